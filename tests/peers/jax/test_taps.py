"""shardproof.jax: taps of shard_map, of scans and of sharded arrays, on meshes of any names and any
order of devices; and what it refuses."""
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import shardproof as sp
from shardproof.jax import dump, scan, tap, tapped, trace

CASE = "torus=2x4x1 model=palm-tiny,layers=2,E=16,F=16,H=8,Q=2,V=16 batch=8 prompt=3 gen=3 seed=5"
ORDER = [3, 1, 0, 2, 5, 7, 6, 4]
PASSES = ("prefill.c0", "decode.1", "decode.2")


@pytest.fixture(scope="module")
def reference():
    return sp.Reference(CASE)


def mesh_of(names=("data", "model"), sizes=(2, 4), kind=AxisType.Auto, order=ORDER):
    devices = np.array(jax.devices())[order].reshape(sizes)
    return Mesh(devices, names, axis_types=(kind,) * len(names))


def name_of(id):
    """The pass, and the name that a tap has."""
    at = next(p for p in PASSES if id.startswith(p + "."))
    return at, id[len(at) + 1:]


def spec_of(reference, id):
    """A value cut where it can be: its last dim of 8 or more over both axes, the batch over one."""
    dims, shape = reference.dims(id), reference[id].shape
    if shape[-1] >= 8 and len(dims) > 1:
        return P(*[None] * (len(dims) - 1), ("model", "data"))
    return P("data")


def through_shard_map(reference, mesh, change=lambda id, local: local, **flags):
    """The taps of each pass: all values, as shards."""
    out = {}
    for at in PASSES:
        ids = [id for id in reference if name_of(id)[0] == at]
        specs = {id: spec_of(reference, id) for id in ids}

        def body(arrays):
            for id in ids:
                tap(name_of(id)[1], change(id, arrays[id]), reference.dims(id), spec=specs[id])
            return jnp.zeros(())

        step = jax.jit(jax.shard_map(tapped(body), mesh=mesh, in_specs=(specs,),
                                     out_specs=(P(), P(*mesh.axis_names)), **flags))
        out[at] = step({id: np.array(reference[id]) for id in ids})[1]
    return out


@pytest.mark.parametrize("flags", [{"check_vma": False}, {"check_vma": True}])
def test_shards_on_a_mesh_of_own_names(reference, flags, tmp_path):
    passes = through_shard_map(reference, mesh_of(), **flags)
    verdict = sp.judge(trace(CASE, passes))
    assert verdict.right and verdict.json["compared"] == verdict.json["of"]
    dump(tmp_path / "t.h5", CASE, passes)
    assert sp.judge(tmp_path / "t.h5").values == verdict.values
    assert list(verdict.values) == list(sp.judge(tmp_path / "t.h5").values)


def test_axes_of_size_one_and_a_mesh_in_another_order(reference):
    mesh = mesh_of(("pipe", "model", "expert", "data"), (1, 4, 1, 2))
    passes = through_shard_map(reference, mesh, check_vma=False)
    assert sp.judge(trace(CASE.replace("2x4x1", "4x2x1"), passes)).right
    assert sp.judge(trace(CASE, passes, mesh="model=y data=x")).right
    assert sp.judge(trace(CASE, passes, mesh={"model": "y", "data": "x"})).right


def test_the_rank_of_a_wrong_shard_is_its_place_on_the_mesh(reference):
    wrong = "decode.1.layer0.up"

    def change(id, local):
        there = (lax.axis_index("data") == 1) & (lax.axis_index("model") == 2)
        return local + jnp.where(there, 1, 0) if id == wrong else local

    passes = through_shard_map(reference, mesh_of(), change, check_vma=False)
    verdict = sp.judge(trace(CASE, passes))
    assert verdict.first == wrong and verdict.ranks == [1 * 4 + 2]
    assert mesh_of().devices.flat[6].id == ORDER[6]


def test_a_spec_that_is_not_the_values_is_found(reference, monkeypatch):
    passes = through_shard_map(reference, mesh_of(), check_vma=False)
    swapped = {at: {key.replace('["model", "data"]', '["data", "model"]'): value
                    for key, value in taps.items()} for at, taps in passes.items()}
    verdict = sp.judge(trace(CASE, swapped))
    assert not verdict.right and verdict.cause.fault == "axes in another order"


def one_value(reference, id, tapping, mesh, spec):
    """The verdict on one value that is tapped in another way, of a trace that has its operands."""
    step = jax.jit(jax.shard_map(tapped(tapping), mesh=mesh, in_specs=(spec,), check_vma=False,
                                 out_specs=(P(), P(*mesh.axis_names))))
    at, _ = name_of(id)
    made = trace(CASE, {at: step(np.array(reference[id]))[1]})
    for other, value in reference.items():
        if other != id:
            made.add(other, value)
    return sp.judge(made)


@pytest.mark.parametrize("parts, right", [(2, True), (1, False)])
def test_partial_sums(reference, parts, right):
    id = "decode.1.layer0.gate"

    def tapping(gate):
        tap("layer0.gate", gate / parts, "BLF", spec=P(None, None, "model"), partial=("data",))
        return jnp.zeros(())

    verdict = one_value(reference, id, tapping, mesh_of(), P(None, None, "model"))
    assert verdict.right == right
    assert right or (verdict.first == id and verdict.cause.fault == "reduction twice")


@pytest.mark.parametrize("first, right", [(0, True), (1, False)])
def test_a_scan_over_layers(reference, first, right):
    gates = np.stack([reference[f"decode.1.layer{n}.gate"] for n in range(2)])

    def forward(gates):
        def body(carry, gate):
            tap("layer*.gate", gate, "BLF_xy")
            return carry, gate
        return scan(body, jnp.zeros(()), gates, first=first)[0]

    step = jax.jit(jax.shard_map(
        tapped(forward), mesh=mesh_of(), in_specs=(P(None, None, None, ("data", "model")),),
        out_specs=(P(), P("data", "model")), check_vma=False))
    made = trace(CASE, {"decode.1": step(gates)[1]})
    for id, value in reference.items():
        if not (id.startswith("decode.1.") and id.endswith(".gate")):
            made.add(id, value)
    verdict = sp.judge(made)
    assert verdict.right == right
    assert right or verdict.values["decode.1.layer1.gate"] == "different"


@pytest.mark.parametrize("sharded", [True, False])
def test_scans_in_a_scan_over_steps(reference, sharded):
    ups = np.stack([[reference[f"decode.{t}.layer{n}.up"] for n in range(2)] for t in (1, 2)])
    tokens = np.stack([reference[f"decode.{t}.token"] for t in (1, 2)])

    def forward(ups, tokens):
        def layer(carry, up):
            tap("decode.*.layer*.up", up, "BLF_x" if sharded else "BLF")
            return carry, None

        def decode(carry, of):
            tap("decode.*.token", of[1], "B")
            return scan(layer, carry, of[0])

        return scan(decode, jnp.zeros(()), (ups, tokens), first=1)[0]

    spec, mesh = P(None, None, None, None, "data"), mesh_of()
    if sharded:
        step = jax.shard_map(tapped(forward), mesh=mesh, in_specs=(spec, P()), check_vma=False,
                             out_specs=(P(), P("data", "model")))
        passes = {"": jax.jit(step)(ups, tokens)[1]}
    else:
        passes = {"": jax.jit(tapped(forward))(jax.device_put(ups, NamedSharding(mesh, spec)),
                                               tokens)[1]}
    made = trace(CASE, passes)
    for id, value in reference.items():
        if not (id.startswith("decode.") and id.endswith((".up", ".token"))):
            made.add(id, value)
    verdict = sp.judge(made)
    assert verdict.right and verdict.json["compared"] == verdict.json["of"]


def test_sharded_arrays_say_their_layout_themselves(reference):
    mesh = mesh_of()

    @tapped
    def forward(arrays):
        for id, array in arrays.items():
            tap(name_of(id)[1], array, reference.dims(id))

    passes = {}
    for at in PASSES:
        arrays = {id: jax.device_put(np.array(reference[id]),
                                     NamedSharding(mesh, spec_of(reference, id)))
                  for id in reference if name_of(id)[0] == at}
        passes[at] = jax.jit(forward)(arrays)[1]
    verdict = sp.judge(trace(CASE, passes))
    assert verdict.right and verdict.json["compared"] == verdict.json["of"]
    # In the right order of devices a block is another device's.
    straight = mesh_of(order=range(8)).devices
    assert [d.id for d in mesh.devices.flat] != [d.id for d in straight.flat]


def test_a_replica_that_differs_is_found_on_its_device(reference):
    mesh, id = mesh_of(), "decode.1.layer0.up"
    value = np.array(reference[id])
    sharding = NamedSharding(mesh, P())
    shards = [jax.device_put(value + (device.id == 6), device) for device in mesh.devices.flat]
    array = jax.make_array_from_single_device_arrays(value.shape, sharding, shards)
    made = trace(CASE, {"decode.1": tapped(lambda a: tap("layer0.up", a, "BLF"))(array)[1]})
    for other, whole in reference.items():
        if other != id:
            made.add(other, whole)
    verdict = sp.judge(made)
    assert verdict.first == id and [mesh.devices.flat[r].id for r in verdict.ranks] == [6]


def test_unreduced_arrays(reference):
    mesh = mesh_of(kind=AxisType.Explicit)
    norm, w = reference["decode.1.layer0.norm"], reference.weights["layer0.w_gate"]

    @tapped
    def forward(norm, w):
        return tap("layer0.gate", jnp.einsum("ble,ef->blf", norm, w, precision="highest",
                                             out_sharding=P(None, None, "model",
                                                            unreduced={"data"})), "BLF")

    with jax.set_mesh(mesh):
        gate, taps = jax.jit(forward)(jax.device_put(np.array(norm), P(None, None, "data")),
                                      jax.device_put(np.array(w), P("data", "model")))
    assert gate.sharding.spec.unreduced == {"data"}
    made = trace(CASE, {"decode.1": taps})
    for id, value in reference.items():
        if id.endswith("norm"):  # what follows from gate follows from the reference's
            made.add(id, value)
    assert sp.judge(made).values["decode.1.layer0.gate"] == "within"


def test_bf16_and_what_else_is_said(reference):
    line = CASE + " act=bf16 weights=bf16"
    rounded = sp.Reference(line)
    taps = {at: tapped(lambda at=at: [
        tap(name_of(id)[1], jnp.asarray(value).astype(
            jnp.bfloat16 if name_of(id)[1].split(".")[-1] in ("norm", "up", "q") else value.dtype),
            rounded.dims(id), given=id.endswith(".up")) for id, value in rounded.items()
        if name_of(id)[0] == at])()[1] for at in PASSES}
    verdict = sp.judge(trace(line, taps))
    assert verdict.right
    assert all(verdict.values[id] == "not judged" for id in rounded if id.endswith(".up"))


def test_outside_of_tapped_nothing_happens():
    assert tap("layer0.up", 3, "B") == 3
    carry, ys = scan(lambda c, x: (tap("a", c + x), x), 0, jnp.arange(3))
    assert carry == 3 and list(ys) == [0, 1, 2]


def refusal(function, *arguments):
    with pytest.raises(sp.Error) as error:
        function(*arguments)
    return str(error.value)


def test_taps_that_jax_does_not_let_out():
    taps_one = lambda x: tap("layer0.up", x, "B")
    for inside in (lambda x: lax.scan(lambda c, y: (c, taps_one(y)), 0, x),
                   lambda x: lax.fori_loop(0, 3, lambda i, y: taps_one(y), x),
                   lambda x: lax.cond(x[0] > 0, taps_one, lambda y: y, x),
                   jax.vmap(taps_one), jax.jit(taps_one), jax.checkpoint(taps_one)):
        message = refusal(jax.jit(tapped(inside)), jnp.ones(4))
        assert message.startswith("jax_tap: layer0.up: JAX traces this part by itself")


def test_names_that_are_not_one_values():
    twice = tapped(lambda x: (tap("a", x, "B"), tap("a", x, "B")))
    assert refusal(twice, jnp.ones(2)).startswith("jax_tap: a: tapped twice")
    star = tapped(lambda x: tap("layer*.a", x, "B"))
    assert refusal(star, jnp.ones(2)).startswith("jax_tap: layer*.a: inside of 0 scans")
    bare = tapped(lambda x: scan(lambda c, y: (c, tap("a", y)), 0, x))
    assert refusal(bare, jnp.ones(2)).startswith("jax_tap: a: inside of 1 scans")
    body = lambda c, y: (c, tap("layer*.a", y, ""))
    both = tapped(lambda x: (scan(body, 0, x), scan(body, 0, x)))
    assert "tapped in two scans" in refusal(both, jnp.ones(2))


def local_tap(layout, mesh, **said):
    f = tapped(lambda x: tap("a", x, layout, **said))
    return jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(jnp.ones(2))


def test_layouts_that_do_not_fit():
    mesh = mesh_of()
    array = jax.device_put(np.ones((8, 8)), NamedSharding(mesh, P("data")))
    one = lambda layout, **said: trace(CASE, {"decode.1": tapped(
        lambda x: tap("a", x, layout, **said))(array)[1]})
    assert refusal(one, None).startswith("jax_layout: decode.1.a: a tap of a sharded array needs")
    assert refusal(one, "B_yE").startswith("jax_layout: decode.1.a: said to be B_yE, its sharding")
    with pytest.raises(sp.Error, match="jax_layout: decode.1.a: `spec` and `partial` need"):
        one("B_yE", spec=P("data"))
    with pytest.raises(sp.Error, match="layout_mesh: tp is not an axis of the mesh data, model"):
        one("BE", spec=P("tp"))
    steps = tapped(lambda x: scan(lambda c, y: (c, tap("layer*.a", y, "E")), 0, x))(array)[1]
    assert refusal(trace, CASE, {"decode.1": steps}).startswith(
        "jax_layout: decode.1.layer*.a: the steps of its scan are cut") or \
        steps[next(iter(steps))].sharding.is_fully_replicated
    taps = local_tap(None, mesh)[1]
    taps = {key: jnp.ones((2, 4, 2)) for key in taps}
    assert refusal(trace, CASE, {"decode.1": taps}).startswith(
        "jax_layout: decode.1.a: in a shard_map a tap needs a layout")


def test_meshes_that_no_torus_is():
    four = mesh_of(("a", "b", "c"), (2, 2, 2))
    assert "jax_mesh: " in refusal(trace, CASE, {"": stacked({"a": 2, "b": 2, "c": 2, "d": 2})})
    first, second = stacked({"a": 2, "b": 4}, "u"), stacked({"a": 4, "b": 2}, "v")
    message = refusal(trace, CASE, {"": first | second})
    assert message == "jax_mesh: v is on the mesh a=4 b=2, u on a=2 b=4; a trace has one mesh"
    for mesh in ("a=x", "a=x b=x", "a=x b=w", "a=x b=y c=z"):
        with pytest.raises(sp.Error, match="jax_mesh: mesh .* does not give each axis"):
            trace(CASE, {"": first}, mesh=mesh)
    with pytest.raises(sp.Error, match="jax_tap: a: this shard_map leaves the axes b, c to JAX"):
        f = tapped(lambda x: tap("a", x, "B"))
        jax.jit(jax.shard_map(f, mesh=four, in_specs=P("a"), out_specs=(P("a"), P("a")),
                              axis_names={"a"}, check_vma=False))(jnp.ones(2))


def stacked(sizes, name="a"):
    """Taps as a shard_map on a mesh of these sizes returns them."""
    class FakeMesh:
        axis_names = manual_axes = tuple(sizes)
    at = jax.sharding.get_abstract_mesh
    jax.sharding.get_abstract_mesh = lambda: FakeMesh
    try:
        taps = tapped(lambda: tap(name, jnp.ones(2), "B"))()[1]
    finally:
        jax.sharding.get_abstract_mesh = at
    return {key: jnp.ones((*sizes.values(), 2)) for key in taps}


def test_arrays_of_other_processes():
    class Elsewhere:
        is_fully_addressable = False
    taps = tapped(lambda: tap("a", 1.0, ""))()[1]
    assert refusal(trace, CASE, {"": {key: Elsewhere() for key in taps}}).startswith(
        "jax_process: a: this process has not all its shards")
