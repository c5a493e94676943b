"""Values of a shard_map, as a trace that `shardproof compare` judges (docs/compare.md has this
text)."""
import json

import jax.numpy as jnp
import numpy as np

_taps = {}


def tap(name, value, layout, **said):
    """Keeps what each device holds of a value, and returns it. The name is without the pass:
    "layer0.gate"; what is said beside the layout are attributes of docs/trace-format.md."""
    _taps[name, json.dumps({"layout": layout, **said})] = jnp.asarray(value)[None, None, None]
    return value


def tapped(function):
    """For shard_map: the function with its taps as a second result, of P("x", "y", "z")."""
    def with_taps(*arguments):
        _taps.clear()
        return function(*arguments), dict(_taps)
    return with_taps


def dump(path, case, passes, **attributes):
    """Writes the taps of each pass: {"prefill.c0": taps, "decode.1": taps}."""
    arrays, values = {}, {}
    for pass_name, taps in passes.items():
        for (name, said), value in taps.items():
            array, step = np.asarray(value), f"{pass_name}.{name}"
            values[step] = json.loads(said)
            if array.dtype == jnp.bfloat16:
                array, values[step]["encoding"] = array.view(np.uint16), "bf16"
            arrays[step] = array
    attributes |= {"format": "shardproof trace", "version": 1, "case": case, "values": values}
    np.savez(path, **arrays, shardproof=json.dumps(attributes))
