"""The faults of golden/zoo in the order of their numbers: a new one comes last."""
from zoo_faults_attention import ATTENTION, CACHES, POSITIONS
from zoo_faults_known import KNOWN
from zoo_faults_weights import LAYERS, LOOKUPS, SUMS, WEIGHTS

KINDS = ATTENTION + POSITIONS + WEIGHTS + SUMS + LAYERS + LOOKUPS + CACHES + KNOWN
