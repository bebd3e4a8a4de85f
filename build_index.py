"""The builder's command: cards in, a sealed index out."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tqdm import tqdm

from rag.cards import LANGUAGES, CardFolder, read_cards
from rag.errors import CardsInvalid, RagError, SettingsInvalid
from rag.indexing import BuildOptions, BuildReport, build_index, usable_cards
from rag.manifest import Manifest
from rag.settings import Settings, parse_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command.

    0: the index is up to date. 2: cards or settings are at fault. 3: model or index could not be used. The index in use
    is untouched unless the status is 0.
    """
    try:
        settings = parse_settings(os.environ)
        options = _parser(settings).parse_args(arguments)
        return _run(options, settings)
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
        print("\nStopped. What was embedded is kept; the index in use is untouched.", file=sys.stderr)
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
        "--skip-broken", action="store_true", help="leave out broken cards, and say which, instead of stopping"
    )
    parser.add_argument(
        "--clean", action="store_true", help="remove index and caches first, and build everything again"
    )
    return parser


def _run(options: argparse.Namespace, settings: Settings) -> int:
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
    build = BuildOptions(settings.chunk_chars, settings.overlap_chars, settings.context)
    with closing(Bar()) as bar:
        report = build_index(
            cards,
            options.index,
            options.model,
            build,
            threads=settings.threads,
            progress=bar,
            clean=options.clean,
        )
    _summarise(report, options.index, time.monotonic() - started)
    return 0


def _tell(folder: CardFolder) -> None:
    for notice in folder.notices:
        print(f"Note: {notice}")
    if folder.faults:
        print(f"Left out, {len({fault.file for fault in folder.faults})} of {folder.file_count} files:")
        for fault in folder.faults:
            print(f"  {fault}")


def _summarise(report: BuildReport, index_dir: Path, seconds: float) -> None:
    counts, manifest = report.manifest.counts, report.manifest
    state = "built" if report.fresh else "up to date"
    print(
        f"Index {manifest.build_id} in {index_dir} {state}: {counts['cards']} cards, {counts['rows']} chunks, "
        f"{counts['sentences']} sentences; {report.embedded} texts embedded; gate at {_gate(manifest)}; "
        f"{seconds:.1f} s."
    )


def _gate(manifest: Manifest) -> str:
    return " and ".join(f"{manifest.gate[language]:.3f} ({language})" for language in LANGUAGES)


class Bar:
    """Shows how far each step is, with rate and time left; a terminal sees it move, a log gets a line now and then."""

    def __init__(self) -> None:
        self._what = ""
        self._bar: tqdm[Any] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are done."""
        if self._bar is None or self._what != what:
            self.close()
            interval = 0.1 if sys.stderr.isatty() else 5.0
            self._what = what
            self._bar = tqdm(total=total, initial=done, desc=what, unit=" texts", mininterval=interval)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the line of the last step."""
        if self._bar is not None:
            self._bar.close()


if __name__ == "__main__":
    sys.exit(main())
