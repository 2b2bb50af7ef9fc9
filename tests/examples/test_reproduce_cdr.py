"""The commands that repeat the figures of Feinberg et al. 2020, on the smallest layer and without a long search."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce_cdr.py"


def run(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "EDGEWATT_REFERENCE"}
    environment.update(COLUMNS="160", PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.run([sys.executable, SCRIPT, *arguments], env=environment, capture_output=True, text=True)


def test_without_a_figure_the_command_says_what_there_is():
    said = run()
    assert said.returncode == 0
    assert all(f"fig{n}" in said.stdout for n in range(8, 16)) and "not comparable" in said.stdout
    assert "unknown figure 'fig7'" in run("fig7").stderr
    assert "no layer has resnet" in run("fig9", "--layer", "resnet").stderr


WORDS = {
    "fig8": ("Figure 8", "-12.7 %"),
    "fig9": ("Figure 9", "-53.1 %", "-22.2 %", "The best stride that costs no time", "Not comparable"),
    "fig10": ("Figure 10", "at most 2.1 % slower"),
    "fig12": ("Figure 12", "32 to row", "13.1 %"),
    "fig13": ("Figure 13", "matrix", "32 %"),
    "fig14": ("Figure 14", "L1 load misses", "rise on an_dc_fc7"),
    "fig15": ("Figure 15", "bf16", "9.4 %"),
}


def test_every_figure_has_its_table_and_the_papers_numbers():
    done = run(*WORDS, "--layer", "digits_small", "--effort", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("digits_small") >= len(WORDS)
    for figure, words in WORDS.items():
        assert all(word in done.stdout for word in words), figure


def test_the_optimisation_time_stands_beside_or_tools():
    pytest.importorskip("ortools", reason="fig11 times OR-Tools")
    done = run("fig11", "--effort", "0")
    assert done.returncode == 0 and "OR-Tools, ms per row" in done.stdout, done.stderr
