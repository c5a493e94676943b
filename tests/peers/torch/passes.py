"""What versions call differently."""
import inspect

import transformers

try:
    from torch.distributed.tensor import (DTensor, Partial, Replicate, Shard,  # noqa: F401
                                          distribute_tensor)
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import (DTensor, Partial, Replicate, Shard,  # noqa: F401
                                           distribute_tensor)

# What transformers calls the cache that a call is given and returns.
CACHE = "cache" if "cache" in inspect.signature(
    transformers.LlamaForCausalLM.forward).parameters else "past_key_values"


def cache_of(out):
    """The cache that a call returned, as the next one is given it."""
    return {CACHE: getattr(out, CACHE)}
