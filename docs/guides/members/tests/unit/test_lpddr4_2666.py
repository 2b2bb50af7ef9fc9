import edgewatt as ew


def test_it_is_slower_than_the_part_it_extends() -> None:
    slow, fast = ew.dram.load_part("lpddr4-2666"), ew.dram.load_part("lpddr4-3200")
    assert slow.tck_ns == 0.75 and slow.organisation == fast.organisation
    address, kind, clock = [64 * k for k in range(100)], [0] * 100, list(range(100))
    times = [ew.simulate_dram(address, kind, clock, part=part).time_ns for part in (slow, fast)]
    assert times[0] > times[1]
