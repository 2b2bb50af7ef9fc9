"""What scripts/papers/figures/figures.yaml says: papers, their figures and studies, and the claims they print."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from edgewatt.config.loading import validate
from edgewatt.config.sections import Section
from traces.base.document import read_document
from traces.base.errors import InputError, unknown_name

FIGURES = Path(__file__).parent / "figures"


class Paper(Section):
    """A paper: where the figures and claims come from."""

    title: str
    authors: str
    year: int
    source: str


class PaperAxis(Section):
    """What varies along an axis or between panels. path: dotted, into the canonical part of a record."""

    title: str
    path: str = ""
    scale: Literal["linear", "log"] = "linear"


class CpuSeconds(Section):
    """What one point or job took when it was measured, in the default selection and with --full."""

    default: float
    full: float


class Figure(Section):
    """One figure. baseline, theirs, ours: kinds of orderings. reading: what is not as in the paper.

    cpu_s: of a point, by the kind of its ordering (for papers.estimate).
    """

    paper: str
    figure: str | int
    title: str
    shows: Literal["io", "curve"]
    x: PaperAxis
    facet: PaperAxis | None = None
    baseline: str
    theirs: str
    ours: list[str]
    setting: str
    reading: str
    cpu_s: dict[str, CpuSeconds]


class StudyText(Section):
    """What stands above a study's tables (papers.study). reading: what is not as in the paper.

    cpu_s: of a job.
    """

    paper: str
    figure: str | int
    title: str
    setting: str
    reading: str
    cpu_s: CpuSeconds


class Claim(Section):
    """What a paper prints, in our words.

    measure: a name of papers.measures, or STUDY:MEASURE of a study; None: not measured here. verdict: what the
    default selection shows; because: why, and what was tried where the paper leaves the setting open.
    """

    paper: str
    where: str
    says: str
    figures: list[str] = Field(default=[])
    measure: str | None = None
    verdict: Literal["agrees", "agrees under a reading", "differs", "not measured"]
    because: str


class Catalogue(Section):
    """The whole file."""

    papers: dict[str, Paper]
    figures: dict[str, Figure]
    studies: dict[str, StudyText]
    claims: list[Claim]


@cache
def load_catalogue() -> Catalogue:
    """Return the catalogue."""
    return validate(Catalogue, read_document(FIGURES / "figures.yaml"))


def paper_figures() -> dict[str, str]:
    """Return name -> one line of every figure and study that `reproduce` knows."""
    catalogue = load_catalogue()
    return {
        name: f"{cited(catalogue, one)}: {one.title}" for name, one in (catalogue.figures | catalogue.studies).items()
    }


def cited(catalogue: Catalogue, figure: Figure | StudyText) -> str:
    """Return how a figure is cited, such as 'Gleinig 2023, Figure 2a'."""
    what = str(figure.figure)
    kind = "" if what.startswith("Table") else "Figures " if "," in what else "Figure "
    return f"{short(catalogue.papers[figure.paper])}, {kind}{what}"


def short(paper: Paper) -> str:
    """Return a paper as it is cited, such as 'Gleinig 2023'."""
    return f"{paper.authors.split(',')[0].split('. ')[-1]} {paper.year}"


def chosen(names: list[str]) -> list[str]:
    """Return the figures that names mean: 'all', a figure, or the beginning of several ('gleinig', 'gleinig-2')."""
    known = list(paper_figures())
    picked: list[str] = []
    for name in names:
        hits = [name] if name in known else [k for k in known if name == "all" or (name and k.startswith(name))]
        if not hits:
            raise unknown_name("figure", name, [*known, "all"])
        picked += hits
    if not picked:
        raise InputError("name at least one figure (`python scripts/papers` lists them), or 'all'")
    return list(dict.fromkeys(picked))
