from pathlib import Path

import edgewatt as ew

NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}


def test_it_is_on_the_page_where_there_is_a_cache(tmp_path: Path) -> None:
    ew.run({"network": NETWORK}, results=tmp_path / "played")
    ew.run({"network": NETWORK, "measure": "io"}, results=tmp_path / "counted")
    for name in ("played", "counted"):
        ew.report(tmp_path / name, tmp_path / f"{name}.html")
    assert 'id="chart-hit_rates"' in (tmp_path / "played.html").read_text()
    assert 'id="chart-hit_rates"' not in (tmp_path / "counted.html").read_text()
