"""The builder's command: cards in, a sealed index out."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from rag.cards import LANGUAGES, CardFolder, read_cards
from rag.errors import CardsInvalid, RagError, SettingsInvalid
from rag.indexing import BuildReport, go_back, open_builder, usable_cards
from rag.manifest import Manifest
from rag.measuring import MEASURES
from rag.settings import Settings, parse_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command.

    0: the index is up to date. 2: cards or settings are at fault. 3: model or index could not be used, or the new build
    is not good enough. The index in use is untouched unless the status is 0 or the message says otherwise.
    """
    try:
        settings = parse_settings(os.environ)
        options = _parser(settings).parse_args(arguments)
        return _roll_back(options) if options.rollback else _build(options, settings)
    except CardsInvalid as error:
        print(error, file=sys.stderr)
        count = len({fault.file for fault in error.faults})
        print(
            f"{len(error.faults)} faults in {count} files. Nothing was built; the index in use is untouched.",
            file=sys.stderr,
        )
        return 2
    except SettingsInvalid as error:
        print(error, file=sys.stderr)
        return 2
    except RagError as error:
        print(error, file=sys.stderr)
        return 3
    except OSError as error:
        print(f"The build stopped: {error}. The index in use is untouched.", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("\nStopped. What was embedded or answered is kept; the index in use is untouched.", file=sys.stderr)
        return 130


def _parser(settings: Settings) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="build_index.py", description=__doc__)
    parser.add_argument(
        "--cards", type=Path, default=settings.cards_dir, help="folder of Markdown cards (default: %(default)s)"
    )
    parser.add_argument(
        "--index", type=Path, default=settings.index_dir, help="folder of the index (default: %(default)s)"
    )
    parser.add_argument(
        "--model", type=Path, default=settings.model_dir, help="folder of the model (default: %(default)s)"
    )
    parser.add_argument(
        "--golden",
        type=Path,
        default=settings.golden_dir,
        help="folder of golden cases that a build has to do well on (default: %(default)s)",
    )
    parser.add_argument(
        "--skip-broken", action="store_true", help="leave out broken cards, and say which, instead of stopping"
    )
    parser.add_argument(
        "--clean", action="store_true", help="build everything again, from no cache, and keep no other build"
    )
    parser.add_argument(
        "--keep",
        type=_count,
        default=1,
        metavar="N",
        help="builds from before that stay on disk for --rollback (default: %(default)s)",
    )
    parser.add_argument(
        "--accept-worse",
        action="store_true",
        help="put the new build into use even if it does worse on the golden cases",
    )
    parser.add_argument(
        "--contexts-for",
        metavar="IDS",
        help="with FICHERO_CONTEXT=llm: ask for contexts of these cards only, set apart by commas; 'missing' stands "
        "for those that golden cases did not find among the first three",
    )
    parser.add_argument(
        "--rollback", action="store_true", help="build nothing, but put the build before into use again"
    )
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no whole number from 0 to 9999")
    return int(text)


def _build(options: argparse.Namespace, settings: Settings) -> int:
    if not options.cards.is_dir():
        print(
            f"There is no folder of cards at {options.cards}. Name one with --cards or FICHERO_CARDS_DIR.",
            file=sys.stderr,
        )
        return 2
    started = time.monotonic()
    folder = read_cards(options.cards, plain_markdown=settings.plain_markdown)
    cards = usable_cards(folder, skip_broken=options.skip_broken)
    _tell(folder)
    settings = replace(settings, model_dir=options.model, golden_dir=options.golden)
    with (
        closing(Bar()) as bar,
        open_builder(settings, options.index, progress=bar, contexts_for=options.contexts_for) as composed,
    ):
        builder = replace(composed, clean=options.clean, keep=options.keep, accept_worse=options.accept_worse)
        report = builder.build(cards)
    _summarise(report, options.index, time.monotonic() - started)
    return 0


def _roll_back(options: argparse.Namespace) -> int:
    left, manifest = go_back(options.index)
    print(
        f"Index {manifest.build_id} in {options.index} is in use again, {manifest.counts['cards']} cards, instead of "
        f"{left}. A running server takes it at its next start or on SIGHUP. Another build goes forward again."
    )
    return 0


def _tell(folder: CardFolder) -> None:
    for notice in folder.notices:
        print(f"Note: {notice}")
    for hidden in folder.hidden:
        print(f"Warning: {hidden}")
    if folder.faults:
        print(f"Left out, {len({fault.file for fault in folder.faults})} of {folder.file_count} files:")
        for fault in folder.faults:
            print(f"  {fault}")


def _summarise(report: BuildReport, index_dir: Path, seconds: float) -> None:
    counts, manifest, changes = report.manifest.counts, report.manifest, report.changes
    if manifest.contexts:
        _tell_contexts(manifest.contexts)
    state = "built" if report.fresh else "up to date"
    print(
        f"Index {manifest.build_id} in {index_dir} {state}: {counts['cards']} cards, {counts['rows']} chunks, "
        f"{counts['sentences']} sentences; gate at {_gate(manifest)}."
    )
    print(
        f"Cards: {changes.added} added, {changes.changed} changed, {changes.removed} removed, "
        f"{changes.unchanged} unchanged. Rows: {changes.rows_new} new, {changes.rows_kept} as before. "
        f"{report.embedded} texts embedded, {report.contextualised} chunks contextualised; {seconds:.1f} s."
    )
    if manifest.evaluation:
        figures = ", ".join(
            f"{name} {manifest.evaluation[name]:.1f}" for name in MEASURES if name in manifest.evaluation
        )
        print(f"Golden cases, per cent: {figures}.")
    else:
        print("No golden case is about these cards, so how well they are found was not measured.")


def _tell_contexts(figures: Mapping[str, Any]) -> None:
    rejected, failed = (
        ", ".join(f"{count} {reason}" for reason, count in figures[name].items()) or "none"
        for name in ("rejected", "failed")
    )
    cost = figures["cost_per_accepted"]
    priced = f"; {cost:.6f} for each accepted, {figures['cost']:.4f} in all" if cost is not None else ""
    times = (
        f"; {figures['p50_seconds']:.1f} s (P50) and {figures['p95_seconds']:.1f} s (P95) a chunk"
        if figures["p50_seconds"] is not None
        else ""
    )
    print(
        f"Contexts: {figures['accepted']} of {figures['chunks']} chunks ({figures['coverage']:.1%}); rejected: "
        f"{rejected}; failed: {failed}; {figures['withheld']} withheld, {figures['left_out']} not asked for; "
        f"{figures['tokens_in']} tokens in, {figures['tokens_out']} out{times}{priced}."
    )


def _gate(manifest: Manifest) -> str:
    return " and ".join(f"{manifest.gate['thresholds'][language]:.3f} ({language})" for language in LANGUAGES)


class Bar:
    """Shows how far each step is, with rate and time left; a terminal sees it move, a log gets a line now and then."""

    def __init__(self) -> None:
        self._what = ""
        self._bar: tqdm[Any] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are done; a total of 0 is not known."""
        if self._bar is None or self._what != what:
            self.close()
            interval = 0.1 if sys.stderr.isatty() else 5.0
            self._what = what
            self._bar = tqdm(total=total or None, initial=done, desc=what, unit="", mininterval=interval)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the line of the last step."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


if __name__ == "__main__":
    sys.exit(main())
