"""The queries that attention is given: transformers rotates them between modules, where no hook
sees them."""
from __future__ import annotations

from typing import Any, Callable, Dict


def watch(model: Any, seen: Callable[[int, Any], None]) -> Callable[[], None]:
    """Calls seen(layer, queries) with what each attention of the model is given, [B, H, L, Q],
    until the result is called. Does nothing with a transformers that has no registry of attention
    functions, and for modules that do not use it."""
    try:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as registry
        find = registry.get_interface
    except (ImportError, AttributeError):
        return lambda: None
    layers: Dict[int, int] = {id(module): int(module.layer_idx) for module in model.modules()
                              if hasattr(module, "layer_idx")}

    def get_interface(*names: Any, **more: Any) -> Any:
        attend = find(*names, **more)

        def watched(module: Any, query: Any, *rest: Any, **options: Any) -> Any:
            if id(module) in layers:
                seen(layers[id(module)], query)
            return attend(module, query, *rest, **options)
        return watched

    before = registry.__dict__.get("get_interface")
    registry.get_interface = get_interface

    def undo() -> None:
        if before is None:
            del registry.get_interface
        else:
            registry.get_interface = before
    return undo
