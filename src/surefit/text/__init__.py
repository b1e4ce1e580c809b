"""Words as vectors: corpora, co-occurrence, GloVe, skip-gram, fastText, sentence vectors."""

from __future__ import annotations

from .corpus import Corpus
from .vocabulary import Vocabulary

__all__ = ["Corpus", "Vocabulary"]
