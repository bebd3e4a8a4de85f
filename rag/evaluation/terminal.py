"""Figures for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rag.measuring import Outcome, Report
from rag.metrics import Difference


def print_reports(reports: Mapping[str, Report]) -> None:
    """A few lines for each part of the cases."""
    for name, report in reports.items():
        print(f"\n{name}: {report.cases} cases")
        for label, figures in (("success@", report.success), ("recall@", report.recall)):
            print("  " + "   ".join(f"{label}{k} {value:5.1f}" for k, value in figures.items()))
        print(
            f"  MRR@10 {report.mrr_10:5.1f}   nDCG@10 {report.ndcg_10:5.1f}   {report.milliseconds:.1f} ms a question"
        )
        for label, value in (
            ("answerable but refused", report.false_refusals),
            ("unanswerable and refused", report.refused),
            ("answer_recall", report.answer_recall),
        ):
            if value is not None:
                print(f"  {label} {value:.1f} %")
        if report.answer_chars is not None:
            print(f"  answers have {report.answer_chars:.0f} characters (median)")


def print_differences(
    before: Mapping[str, Outcome], after: Mapping[str, Outcome], differences: Mapping[str, Difference]
) -> None:
    """A line for each measure: what it was, what it is, and whether chance explains that."""
    for name, difference in differences.items():
        print(f"  {name:15} {_percent(before, name)} → {_percent(after, name)}   {_say(difference)}")


def _percent(outcomes: Mapping[str, Outcome], name: str) -> str:
    values = [value for outcome in outcomes.values() if (value := outcome.measure(name)) is not None]
    return f"{100 * sum(values) / len(values):5.1f}"


def _say(difference: Difference) -> str:
    mean, low, high = (100 * value for value in (difference.mean, difference.low, difference.high))
    verdict = "chance explains it" if difference.p >= 0.05 else "more than chance"
    return f"{mean:+5.1f} points (95 %: {low:+.1f} to {high:+.1f}; p = {difference.p:.3f}, {verdict})"
