"""Model selection with guarantees."""
