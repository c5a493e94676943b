#pragma once

/// The C interface, which tools/python loads. Texts are UTF-8; a result is a JSON text that the
/// caller frees with shardproof_free, {"error": {"label": ..., "message": ...}} of a caller's
/// mistake. Objects are released with shardproof_release, after everything that was made from them.
/// Nothing is global: different objects may be used by different threads at once.
#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#define SHARDPROOF_NOEXCEPT noexcept
extern "C" {
#else
#include <stddef.h>
#include <stdint.h>
#define SHARDPROOF_NOEXCEPT
#endif
#define SHARDPROOF_API __attribute__((visibility("default")))

typedef struct ShardproofObject ShardproofObject;

/// The version of this interface, which a loader compares with its own.
SHARDPROOF_API int shardproof_interface(void) SHARDPROOF_NOEXCEPT;
/// Returns the feature that this processor lacks, or null; call it before anything else.
SHARDPROOF_API const char* shardproof_missing_feature(void) SHARDPROOF_NOEXCEPT;
SHARDPROOF_API void shardproof_free(char* text) SHARDPROOF_NOEXCEPT;
SHARDPROOF_API void shardproof_release(ShardproofObject* object) SHARDPROOF_NOEXCEPT;

// Layouts and tori.

/// {"text", "dims": [{"letter", "axes"}], "partial", "by_max"} of a layout.
SHARDPROOF_API char* shardproof_layout(const char* text) SHARDPROOF_NOEXCEPT;
/// {"torus", "sizes": [X, Y, Z], "local": shape of a shard, "blocks": [[block of each dim] of each
/// chip]} of a layout on a torus, for a global shape (JSON).
SHARDPROOF_API char* shardproof_blocks(const char* layout, const char* torus,
                                       const char* shape) SHARDPROOF_NOEXCEPT;

// Cases. The line of a case or a model may be followed by the text of its model on lines of its
// own, "model=my.model,E=64 batch=2\nmodel my\n...": the file my.model is then not read. Answers
// have the text so.

/// {"case": the whole line, "torus", "model", "letters": {"B": 24, ...}}.
SHARDPROOF_API char* shardproof_case(const char* line) SHARDPROOF_NOEXCEPT;
/// {"case"}: the case that `verify --cases` draws as number `index` of a seed.
SHARDPROOF_API char* shardproof_draw(uint64_t seed, uint64_t index) SHARDPROOF_NOEXCEPT;
/// {"cases"}: legal cases that are simpler in one respect each, the boldest first.
SHARDPROOF_API char* shardproof_simpler(const char* line) SHARDPROOF_NOEXCEPT;
/// What `verify --case LINE --json` prints of the case.
SHARDPROOF_API char* shardproof_verify(const char* line) SHARDPROOF_NOEXCEPT;

// Weights.

SHARDPROOF_API char* shardproof_weights_generate(const char* model, uint64_t seed,
                                                 ShardproofObject** out) SHARDPROOF_NOEXCEPT;
SHARDPROOF_API char* shardproof_weights_load(const char* path,
                                             ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// Weights of a text's model, of a checkpoint by a map (docs/spec-model-map.md).
SHARDPROOF_API char* shardproof_weights_import(const char* model, const char* map,
                                               const char* config, const char* checkpoint,
                                               ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// Weights of a model from f32 arrays: `tensors` is [{"name", "shape"}, ...], `data` the arrays,
/// row-major, which are copied.
SHARDPROOF_API char* shardproof_weights_of(const char* model, const char* tensors,
                                           const float* const* data,
                                           ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// A model of a text in the sizes that a map, given as its text, reads from a config's JSON text.
SHARDPROOF_API char* shardproof_mapped(const char* model, const char* map, const char* config,
                                       ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// {"model", "layers", "extents", "modules": [{"value", "name", "pattern", "take", "input",
/// "dims"}], "tensors": names of those that are read, "unread": entries of the config that no line
/// reads}.
SHARDPROOF_API char* shardproof_mapped_list(ShardproofObject* mapped) SHARDPROOF_NOEXCEPT;
/// Weights of a mapped model from f32 arrays by the names of its checkpoint, as
/// shardproof_weights_of takes them; {"unread": names that no weight has}.
SHARDPROOF_API char* shardproof_mapped_weights(ShardproofObject* mapped, const char* tensors,
                                               const float* const* data,
                                               ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// Likewise from safetensors, a file or a directory.
SHARDPROOF_API char* shardproof_mapped_files(ShardproofObject* mapped, const char* path,
                                             ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// {"model", "tensors": [{"name", "dims", "shape"}]}.
SHARDPROOF_API char* shardproof_weights_list(ShardproofObject* weights) SHARDPROOF_NOEXCEPT;
/// The f32 numbers of a weight, row-major, as long as the weights live; null if there is none.
SHARDPROOF_API const float* shardproof_weights_data(ShardproofObject* weights,
                                                    const char* name) SHARDPROOF_NOEXCEPT;
SHARDPROOF_API char* shardproof_weights_save(ShardproofObject* weights,
                                             const char* path) SHARDPROOF_NOEXCEPT;

// The unsharded model's values.

/// Runs the unsharded model of a case, with its own weights or, if not null, these.
SHARDPROOF_API char* shardproof_reference(const char* line, ShardproofObject* weights,
                                          ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// {"values": [{"id", "dims", "shape", "type": "f32" or "i32"}]} in the order of the run.
SHARDPROOF_API char* shardproof_reference_list(ShardproofObject* reference) SHARDPROOF_NOEXCEPT;
/// The numbers of a value, row-major, as long as the reference lives; null if there is none.
SHARDPROOF_API const void* shardproof_reference_data(ShardproofObject* reference,
                                                     const char* id) SHARDPROOF_NOEXCEPT;

// Dumps.

/// A dump without values; `attributes` are the file's (docs/trace-format.md), a JSON object.
SHARDPROOF_API char* shardproof_dump(const char* attributes,
                                     ShardproofObject** out) SHARDPROOF_NOEXCEPT;
SHARDPROOF_API char* shardproof_dump_load(const char* path,
                                          ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// Adds an array: `what` is {"name", "attributes", "encoding", "shape", "chip": [x, y, z] or null}.
/// The numbers, row-major, are copied.
SHARDPROOF_API char* shardproof_dump_add(ShardproofObject* dump, const char* what,
                                         const void* numbers, size_t bytes) SHARDPROOF_NOEXCEPT;
/// The same without a copy: the numbers must stay as they are as long as the dump.
SHARDPROOF_API char* shardproof_dump_lend(ShardproofObject* dump, const char* what,
                                          const void* numbers, size_t bytes) SHARDPROOF_NOEXCEPT;
/// Writes a dump into an HDF5 file, which shardproof_dump_load reads as the same.
SHARDPROOF_API char* shardproof_dump_save(ShardproofObject* dump,
                                          const char* path) SHARDPROOF_NOEXCEPT;
/// Judges a dump. `request` is {"file", "case", "weights_file", "golden", "given", "fail_on"}, each
/// of which may be missing; `weights` may be null.
SHARDPROOF_API char* shardproof_compare(ShardproofObject* dump, ShardproofObject* weights,
                                        const char* request,
                                        ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// {"text": the comparison in one of the forms "text", "json", "html", "junit", "annotations"}.
SHARDPROOF_API char* shardproof_comparison(ShardproofObject* comparison,
                                           const char* form) SHARDPROOF_NOEXCEPT;

/// Holds two dumps of one model against each other. `request` is {"files": [of A, of B], "case",
/// "case_of_b", "weights_file", "weights_file_of_b", "given", "same", "plain": without a model,
/// "runs"}, each of which may be missing; the weights of both may be null.
SHARDPROOF_API char* shardproof_compare_pair(ShardproofObject* a, ShardproofObject* b,
                                             ShardproofObject* weights_a,
                                             ShardproofObject* weights_b, const char* request,
                                             ShardproofObject** out) SHARDPROOF_NOEXCEPT;
/// {"text": the result in one of the forms "text", "quiet", "json", "html"}.
SHARDPROOF_API char* shardproof_pair(ShardproofObject* pair, const char* form) SHARDPROOF_NOEXCEPT;

#ifdef __cplusplus
}
#endif
