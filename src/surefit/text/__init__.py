"""Words as vectors: corpora, co-occurrence, GloVe, skip-gram, fastText, sentence vectors."""

from __future__ import annotations

from .cooccurrence import Cooccurrence
from .corpus import Corpus
from .evaluation import evaluate
from .fasttext import FastTextClassifier
from .glove import GloVe
from .sent2vec import Sent2Vec
from .sentences import SentenceVectors
from .skipgram import SkipGram
from .vectors import WordVectors
from .vocabulary import Vocabulary

__all__ = [
    "Cooccurrence",
    "Corpus",
    "FastTextClassifier",
    "GloVe",
    "Sent2Vec",
    "SentenceVectors",
    "SkipGram",
    "Vocabulary",
    "WordVectors",
    "evaluate",
]
