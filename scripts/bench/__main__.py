"""Measure edgewatt: python scripts/bench [SUITE ...]

    python scripts/bench iomodel wires                # CPU time of a call, an access, a byte; beside peers installed
    python scripts/bench --against ../old             # every case in turns with another checkout with built kernels
    python scripts/bench dram --instructions          # instructions of a call and a unit (needs valgrind)
    python scripts/bench orders --json orders.json    # everything as JSON, too

Times are thread CPU seconds on one core, medians of rounds in turns, with an A/A control (harness.py). Cases that read
reference instances need EDGEWATT_REFERENCE. docs/performance.md holds results with machine and date.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(path for path in sys.path if Path(path).resolve() != HERE)]

from bench.harness import SUITES, Measured, cases_of, compare, instructions, measure, pin_to_one_core  # noqa: E402


def show(row: Measured) -> None:
    unit = "" if row.of == "call" else f"{row.per_unit_ns:10.2f} ns/{row.of}"
    ratio = "" if row.ratio is None else f"  {row.ratio:6.2f} x {row.peer}"
    facts = "".join(f"  {name} {value}" for name, value in row.facts.items())
    print(
        f"{row.suite:9} {row.name:52} {1e3 * row.cpu_s:10.3f} ms{unit:22} A/A {row.a_to_a:.2f}{ratio}{facts}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--only", default="", help="Measure only cases whose name holds this.")
    parser.add_argument("--against", type=Path, metavar="DIR", help="Measure in turns with this checkout.")
    parser.add_argument("--rounds", type=int, default=11, help="Rounds of a case at most.")
    parser.add_argument("--seconds", type=float, default=10.0, help="Start no round of a case after these seconds.")
    parser.add_argument("--instructions", action="store_true", help="Count instructions in place of time.")
    parser.add_argument("--calls", type=int, help="Only make this many calls of each case (for --instructions).")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write what was measured as JSON, too.")
    given = parser.parse_args()
    pin_to_one_core()
    rows: list[dict[str, object]] = []
    for suite in given.suites or SUITES:
        cases = (case for case in cases_of(suite) if given.only in case.name)
        if given.calls:
            for case in cases:
                for _ in range(given.calls):
                    case.work()
        elif given.instructions:
            for case in cases:
                count = instructions(suite, case)
                print(f"{suite:9} {case.name:52} {count:16,.0f} instructions, {count / case.units:12,.1f} a {case.of}")
                rows.append({"suite": suite, "name": case.name, "instructions": count, "units": case.units})
        else:
            measured = (measure(suite, case, given.rounds, given.seconds) for case in cases)
            if given.against:
                measured = compare(suite, given.against, HERE.parents[1], given.only, given.rounds, given.seconds)
            for row in measured:
                show(row)
                rows.append(asdict(row))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
