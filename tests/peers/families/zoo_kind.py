"""What a fault of golden/zoo is, and what several of them are planted in."""
import dataclasses
from typing import Callable

from zoo_runs import Subject


@dataclasses.dataclass(frozen=True)
class Kind:
    """A fault: what is wrong in a sentence, the kind of system it was met in, public reports of its
    class ("owner/repository#number"), how it is planted, in what (by a suffix of the dump's name),
    and the kind of cause that compare is to say."""
    name: str
    section: str
    says: str
    met: str
    reports: tuple
    plant: Callable
    cause: str
    subject: Subject = Subject()
    sets: tuple = ("full", "hooks")
    others: tuple = ()          # of (suffix, subject, plant or None)
    causes: tuple = ()          # of (set, cause) where a set shows it as another kind
    right: Callable = None      # of the right run, where it is not the peer's own


ONE, TWO = "1x1x1", "2x1x1"
TP, CP = "serving engine, tensor parallel", "serving engine, keys cut over chips"


def plain(**more):
    return Subject(torus=ONE, **more)


def decoding(**more):
    return plain(**{"passes": (2, 5, 5, 2)} | more)


DEEP = Subject(layers=2)
INT8 = Subject(more="weights=int8")
MANY = "E=16,F=24,H=4,K=4,Q=4,V=24"
ALL = ("full", "hooks", "lean")
