#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/text/json_text.h"
#include "weights/base/error.h"

/// What a caller in another language keeps of the library, until it releases it.
struct ShardproofObject {
  ShardproofObject() = default;
  ShardproofObject(const ShardproofObject&) = delete;
  ShardproofObject& operator=(const ShardproofObject&) = delete;
  virtual ~ShardproofObject() = default;
};

namespace shardproof::binding {

/// Copies a text to memory that the caller frees with shardproof_free; null without memory.
inline char* copied(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

inline std::string error_text(const std::string& label, const std::string& message) {
  const nlohmann::json error{{"error", {{"label", label}, {"message", message}}}};
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns the JSON text of make()'s result, or {"error": {"label": ..., "message": ...}} of what
/// it throws: no exception passes a caller that is not C++.
template <class Make>
char* answer(Make&& make) noexcept {
  try {
    const nlohmann::json result = make();
    return copied(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const Error& error) {
    return copied(error_text(error.label(), error.message()));
  } catch (const nlohmann::json::exception& error) {
    return copied(error_text("binding_json", error.what()));
  } catch (const std::bad_alloc&) {
    return copied(error_text("memory_c1", "there is not enough memory"));
  } catch (const std::exception& error) {
    return copied(error_text("binding_failed", error.what()));
  }
}

/// Like answer(), for a function that makes an object: {} with the object in `out`.
template <class Make>
char* object_answer(ShardproofObject** out, Make&& make) noexcept {
  *out = nullptr;
  return answer([&] {
    std::unique_ptr<ShardproofObject> object = make();
    *out = object.release();
    return nlohmann::json::object();
  });
}

/// Returns the object as what it must be. Throws Error("binding_object", ...) if it is another one.
template <class T>
T& as(ShardproofObject* object) {
  if (auto* const of = dynamic_cast<T*>(object)) return *of;
  throw Error("binding_object", "a handle of another kind, or none");
}

}  // namespace shardproof::binding
