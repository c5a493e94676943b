"""The queries that attention is given: transformers rotates them between modules, where no hook
sees them."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Tuple


def watch(model: Any, seen: Callable[[int, Any], None]) -> Callable[[], None]:
    """Calls seen(layer, queries) with what each attention of the model is given, [B, H, L, Q],
    until the result is called. Does nothing with a transformers that has no registry of attention
    functions, and for modules that do not use it."""
    try:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as registry
    except ImportError:
        return lambda: None
    layers: Dict[int, int] = {id(module): int(module.layer_idx) for module in model.modules()
                              if hasattr(module, "layer_idx")}

    def watched(attend: Any) -> Any:
        def attend_seen(module: Any, query: Any, *rest: Any, **options: Any) -> Any:
            if id(module) in layers:
                seen(layers[id(module)], query)
            return attend(module, query, *rest, **options)
        return attend_seen

    if not hasattr(registry, "get_interface"):
        return _replace(model, registry, watched)
    find = registry.get_interface
    before = registry.__dict__.get("get_interface")
    registry.get_interface = lambda *names, **more: watched(find(*names, **more))

    def undo() -> None:
        if before is None:
            del registry.get_interface
        else:
            registry.get_interface = before
    return undo


def _replace(model: Any, registry: Any, watched: Callable[[Any], Any]) -> Callable[[], None]:
    """Does so in earlier versions, whose attention looks its function up in the registry, or calls
    the plain one of the file that has its class."""
    local = registry._local_mapping if hasattr(registry, "_local_mapping") else registry
    before = dict(local)
    plain: List[Tuple[Dict[str, Any], Any]] = []
    for name in list(registry):
        registry[name] = watched(registry[name])
    for module in model.modules():
        for base in type(module).__mro__ if hasattr(module, "layer_idx") else ():
            names = vars(sys.modules[base.__module__])
            if "eager_attention_forward" in names and all(one is not names for one, _ in plain):
                plain.append((names, names["eager_attention_forward"]))
                names["eager_attention_forward"] = watched(names["eager_attention_forward"])

    def undo() -> None:
        local.clear()
        local.update(before)
        for names, function in plain:
            names["eager_attention_forward"] = function
    return undo
