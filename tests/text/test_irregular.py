from __future__ import annotations

from aether.text.words import BASE_FORMS, stem, terms


def test_every_form_leads_to_a_base_that_is_no_form_itself():
    assert len(BASE_FORMS) > 100
    assert set(BASE_FORMS.values()).isdisjoint(BASE_FORMS)


def test_forms_that_no_stemmer_brings_together_are_one_term():
    assert stem("wrote") != stem("written")
    assert terms("wrote").words == terms("written").words == terms("write").words
