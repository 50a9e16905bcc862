"""Picking: as much of a ranking as a budget allows.

``longest_fitting`` takes the front of a ranking whose whole is measured, because entries share headings and fields;
``heaviest_fitting`` takes entries that each cost a known number of tokens; ``longest_front`` only counts. The same
input gives the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence


def longest_front(many: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `many` of which `fits` is true, as it is of all smaller ones; it is not asked of 0.

    >>> longest_front(10, lambda number: number * number <= 30)
    5
    """
    low, high = 0, many
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def longest_fitting(
    ranking: Sequence[int], size: Callable[[Sequence[int]], int], *, most: int, tried: int,
    close: float = 0.0, depends_on: Mapping[int, int] | None = None,
) -> list[int]:  # fmt: skip
    """Return the longest front of `ranking` with a size of at most `most`, plus those of the next `tried` that fit too.

    The search ends once all but a share `close` of the room is taken. A place is added only after the one it depends on.

    >>> longest_fitting([0, 1, 2, 3], lambda places: sum((50, 70, 30, 15)[place] for place in places), most=100, tried=3)
    [0, 2, 3]
    """
    whole = size(ranking)
    if whole <= most:
        return list(ranking)
    enough = most * (1 - close)
    low, high = 0, len(ranking)
    low_size, high_size = size([]), whole
    turn = 0
    while high - low > 1 and low_size < enough:
        # Measuring is expensive, and interpolation needs few measures; every third step halves the range, because
        # the entries at the end of a ranking are longer than those at its front.
        share = (most - low_size) / (high_size - low_size)
        step = (high - low) // 2 if turn % 3 == 2 else int((high - low) * share)
        middle = low + min(high - low - 1, max(1, step))
        measured = size(ranking[:middle])
        if measured <= most:
            low, low_size = middle, measured
        else:
            high, high_size = middle, measured
        turn += 1
    places, taken = list(ranking[:low]), low_size
    for place in ranking[low : low + tried]:
        if taken >= enough:
            break
        needed = depends_on.get(place, -1) if depends_on else -1
        if needed >= 0 and needed not in places:
            continue
        measured = size([*places, place])
        if measured <= most:
            places, taken = [*places, place], measured
    return places


def heaviest_fitting(costs: Iterable[tuple[int, float, int]], *, most: int) -> set[int]:
    """Return the keys of `costs` (key, weight, tokens) that fit into `most`, the heaviest first, then the newest.

    >>> heaviest_fitting([(1, 0.5, 60), (2, 0.9, 50), (3, 0.5, 40)], most=100)
    {2, 3}
    """
    listed = [one for one in costs if one[2] <= most]
    chosen: set[int] = set()
    for key, _, cost in sorted(listed, key=lambda one: (one[1], one[0]), reverse=True):
        if cost <= most:
            chosen.add(key)
            most -= cost
    return chosen
