"""All faults, and those of a family."""
from faults_attention import ATTENTION, CACHE, POSITIONS
from faults_weights import LAYER, OTHER, SUM, WEIGHT

FAULTS = {fault.name: fault for fault in
          ATTENTION + POSITIONS + WEIGHT + SUM + LAYER + OTHER + CACHE}


def faults_of(model):
    return [fault for fault in FAULTS.values() if fault.applies(model)]
