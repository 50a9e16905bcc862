"""The store: one journal per home, documents as its folded form, nothing lost at a crash."""
