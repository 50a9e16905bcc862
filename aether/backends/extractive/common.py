"""Common words: English words that are in every conversation and so say little about this one."""

from __future__ import annotations

from aether.text.words import stem

# Grouped as they come to mind: doing, saying and feeling, praising, time and amount, empty nouns.
_WORDS = (
    "get got getting go going gone went come came make made making take took taking give gave given put keep kept let use used using try tried trying "
    "start started begin began need want wanted like love loved enjoy enjoyed look looked looking see saw seen find found know knew think thought feel felt "
    "say said tell told talk talking hear heard ask asked mean guess hope hoping wish believe seem seems sound sounds remember forget wonder happen happened "
    "help helped helping show showed work working works set check share shared sharing bring brought leave left turn turned become became stay keep continue "
    "live move pick choose call run do done able ready sure "
    "good great nice cool awesome amazing wonderful fantastic incredible lovely beautiful perfect best better happy glad excited exciting fun proud special "
    "important interesting hard easy big small little new old nice real different same right wrong true main own whole full free "
    "thanks thank please sorry welcome congrats yes yeah no wow hey hi hello okay bye "
    "really very much many lot lots bit more most less least quite pretty super always often sometimes usually still already yet ever maybe perhaps even "
    "actually definitely totally absolutely probably especially exactly just only almost together around away back "
    "time times day days today tonight week weekend year years now then soon later lately recently ago long last next first second once again while "
    "thing things something anything everything nothing stuff way ways kind sort type part side point case lot place one two some any every each all both "
    "someone anyone everyone people person guys folks man life world end idea reason chance moment "
    "far such another other others else than whatever gonna wanna gotta since until however though although instead must need there's here's "
    "don't doesn't didn't can't won't isn't it's that's i'm i've i'll i'd you're you've you'll he's she's we're we've they're let's what's how's".split()
)
COMMON = frozenset(map(stem, _WORDS))
