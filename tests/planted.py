"""Archives in which ideal answers are planted: are they found among any number of other texts, however old?"""

import random
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

START = datetime(2026, 1, 1, tzinfo=UTC)
PLANTED = 40


class Kind(NamedTuple):
    """What the other texts are like."""

    steepness: float
    """Exponent of the frequencies of words: 0 for words that are all equally frequent."""
    shortest: int
    longest: int
    seconds: float
    """Between two items."""


KINDS = {
    "steep, long, spread": Kind(1.2, 20, 80, 600.0),
    "flat, short, bunched": Kind(0.3, 4, 12, 0.001),
    "middling, mixed, a second apart": Kind(0.9, 6, 40, 1.0),
}


def planted_archive(kind: Kind, size: int, *, words: int = 20_000, seed: int = 5):
    """Return records with `PLANTED` ideal answers among them, and the query and id of each."""
    rng = random.Random(seed)
    letters = "bcdfghklmnprstvz"
    names = [
        f"{letters[at % 16]}a{letters[at // 16 % 16]}o{letters[at // 256 % 16]}i{at:x}" for at in range(words)
    ]
    weights = list(accumulate((rank + 3) ** -kind.steepness for rank in range(words)))
    places = rng.sample(range(size), PLANTED)
    asked = {}
    for place in places:
        ranks = [int(words ** rng.uniform(0.2, 0.99)) for _ in range(rng.randint(2, 4))]
        asked[place] = [names[rank] for rank in dict.fromkeys(ranks)]
    records = []
    for place in range(size):
        if place in asked:
            text = [*asked[place] * 3, *rng.choices(names, cum_weights=weights, k=2)]
            rng.shuffle(text)
        else:
            text = rng.choices(names, cum_weights=weights, k=rng.randint(kind.shortest, kind.longest))
        at = (START + timedelta(seconds=kind.seconds * place)).isoformat()
        item = {
            "id": f"wm_{place}",
            "type": "observation",
            "content": " ".join(text),
            "metadata": {"timestamp": at},
        }
        records.append({"item": item, "compression_id": f"c{place // 100}"})
    return records, {f"wm_{place}": " ".join(query) for place, query in asked.items()}
