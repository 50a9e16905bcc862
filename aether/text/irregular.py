"""Irregular forms of English words that notes are full of, which no stemmer brings together."""

from __future__ import annotations

_FAMILIES = """
begin began begun | bend bent | bind bound | bite bit bitten | blow blew blown | break broke broken
bring brought | build built | burn burnt | buy bought | catch caught | choose chose chosen | come came
deal dealt | dig dug | draw drew drawn | dream dreamt | drink drank drunk | drive drove driven
eat ate eaten | fall fell fallen | feed fed | feel felt | fight fought | find found | fly flew flown
forget forgot forgotten | forgive forgave forgiven | freeze froze frozen | get got gotten
give gave given | go went gone | grow grew grown | hang hung | hear heard | hide hid hidden
hold held | keep kept | know knew known | lay laid | lead led | learn learnt | leave left | lend lent
lose lost | make made | mean meant | meet met | pay paid | ride rode ridden | ring rang rung
rise rose risen | run ran | say said | see saw seen | seek sought | sell sold | send sent
shake shook shaken | shoot shot | show shown | shrink shrank shrunk | sing sang sung | sink sank sunk
sit sat | sleep slept | speak spoke spoken | spend spent | spin spun | stand stood | steal stole stolen
stick stuck | strike struck | sweep swept | swim swam swum | swing swung | take took taken
teach taught | tear tore torn | tell told | think thought | throw threw thrown
understand understood | wake woke woken | wear wore worn | win won | write wrote written
rewrite rewrote rewritten | rebuild rebuilt | withdraw withdrew withdrawn | overwrite overwrote overwritten
child children | man men | woman women | foot feet | mouse mice | person people | life lives
wife wives | knife knives | shelf shelves | leaf leaves | half halves | tooth teeth
analysis analyses | index indices | vertex vertices | criterion criteria | schema schemata
decide decision | good better best | bad worse worst
"""
BASE = {
    form: family.split()[0]
    for line in _FAMILIES.strip().splitlines()
    for family in line.split("|")
    for form in family.split()[1:]
}
"""Irregular form -> the word whose stem it shares."""
