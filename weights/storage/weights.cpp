#include "weights/storage/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "weights/base/bf16.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

// Formats the row-major position `flat` as an index: "[3, 0, 7]".
std::string index_text(const Shape& shape, std::size_t flat) {
  auto rest = static_cast<std::int64_t>(flat);
  Shape index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = rest % shape[i];
    rest /= shape[i];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

void require_finite(std::string_view name, const Tensor& tensor) {
  // Sizes have the order of their bits; a maximum of integers is a loop that compilers make vectors
  // of.
  std::uint32_t largest = 0;
  for (const float v : tensor.data)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(v) & 0x7fffffffU);
  if (largest < std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity())) return;
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    if (!std::isfinite(tensor.data[i])) {
      throw Error("weights_value", fmt::format("{}{} is {}; weights must be finite", name,
                                               index_text(tensor.shape, i), tensor.data[i]));
    }
  }
}

template <class Holds>
void require_each(const WeightSpec& spec, const Tensor& tensor, std::string_view rule,
                  Holds&& holds) {
  for (std::size_t i = 0; i < tensor.data.size(); ++i)
    if (!holds(tensor.data[i]))
      throw Error("weights_value", fmt::format("{}{} is {}; {}", spec.name,
                                               index_text(tensor.shape, i), tensor.data[i], rule));
}

}  // namespace

/// The tensors, by name: all in memory, or read on demand.
class Weights::Store {
 public:
  explicit Store(std::map<std::string, Tensor> tensors) {
    for (auto& [name, tensor] : tensors) {
      Entry& entry = entries_[name];
      entry.shape = tensor.shape;
      entry.tensor = std::make_shared<const Tensor>(std::move(tensor));
    }
  }
  Store(std::map<std::string, Shape> shapes, ReadWeight read, std::size_t room)
      : read_(std::move(read)), room_(room) {
    for (auto& [name, shape] : shapes) entries_[name].shape = std::move(shape);
  }

  bool on_demand() const { return read_ != nullptr; }
  std::size_t room() const { return room_; }
  const auto& entries() const { return entries_; }

  const Shape* shape(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.shape;
  }

  std::shared_ptr<const Tensor> find(std::string_view name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return nullptr;
    Entry& entry = found->second;
    if (!on_demand()) return entry.tensor;
    const std::lock_guard lock(mutex_);
    entry.turn = ++turn_;
    if (entry.tensor == nullptr) entry.tensor = entry.lent.lock();
    if (entry.tensor == nullptr) {
      make_room(bytes_of(entry));
      entry.tensor = std::make_shared<const Tensor>(read_(found->first));
      entry.lent = entry.tensor;
    }
    return entry.tensor;
  }

  /// Returns a copy, for which no room is taken.
  Tensor copy(const std::string& name) const {
    return on_demand() ? read_(name) : *entries_.find(name)->second.tensor;
  }

 private:
  struct Entry {
    Shape shape;
    std::shared_ptr<const Tensor> tensor = nullptr;
    std::weak_ptr<const Tensor> lent = {};  // of weights on demand
    std::uint64_t turn = 0;                 // when it was asked for last
  };

  static std::size_t bytes_of(const Entry& entry) {
    return static_cast<std::size_t>(element_count(entry.shape)) * sizeof(float);
  }

  /// Gives up the tensors that were used longest ago until so many bytes more fit.
  void make_room(std::size_t bytes) {
    std::size_t all = bytes;
    std::vector<Entry*> by_turn;
    for (auto& [name, entry] : entries_) {
      if (!entry.lent.expired()) all += bytes_of(entry);
      if (entry.tensor != nullptr) by_turn.push_back(&entry);
    }
    std::sort(by_turn.begin(), by_turn.end(),
              [](const Entry* a, const Entry* b) { return a->turn < b->turn; });
    for (Entry* const entry : by_turn) {
      if (all <= room_) return;
      entry->tensor = nullptr;
      if (entry->lent.expired()) all -= bytes_of(*entry);
    }
  }

  std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
  ReadWeight read_;  // null: all are in memory
  std::size_t room_ = 0;
  std::uint64_t turn_ = 0;
};

Weights::Weights(ModelConfig config, std::map<std::string, Tensor> tensors, NumberFormat type)
    : config_(std::move(config)),
      type_(type),
      store_(std::make_shared<Store>(std::move(tensors))) {}

Weights::Weights(ModelConfig config, std::map<std::string, Shape> shapes, ReadWeight read,
                 NumberFormat type, std::size_t room)
    : config_(std::move(config)), type_(type) {
  std::size_t bytes = 0;
  for (const auto& [name, shape] : shapes)
    bytes += static_cast<std::size_t>(element_count(shape)) * sizeof(float);
  if (bytes > room) {
    store_ = std::make_shared<Store>(std::move(shapes), std::move(read), room);
    return;
  }
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, shape] : shapes) tensors.emplace(name, read(name));
  store_ = std::make_shared<Store>(std::move(tensors));
}

Weights Weights::with_config(ModelConfig config) const {
  Weights of = *this;
  of.config_ = std::move(config);
  return of;
}

Weights Weights::changed(ModelConfig config,
                         std::function<void(const std::string&, Tensor&)> change) const {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, entry] : store_->entries()) shapes.emplace(name, entry.shape);
  const auto read = [store = store_, change = std::move(change)](const std::string& name) {
    Tensor tensor = store->copy(name);
    change(name, tensor);
    require_finite(name, tensor);
    return tensor;
  };
  if (on_demand()) return {std::move(config), std::move(shapes), read, type_, store_->room()};
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, shape] : shapes) tensors.emplace(name, read(name));
  return {std::move(config), std::move(tensors), type_};
}

std::shared_ptr<const Tensor> Weights::find(std::string_view name) const {
  return store_->find(name);
}

std::shared_ptr<const Tensor> Weights::at(std::string_view name) const {
  if (auto found = find(name)) return found;
  throw Error("weights_name", fmt::format("{} has no weight {:?}", print_model(config_), name));
}

const Shape& Weights::shape(std::string_view name) const {
  if (const Shape* const found = store_->shape(name)) return *found;
  throw Error("weights_name", fmt::format("{} has no weight {:?}", print_model(config_), name));
}

bool Weights::contains(std::string_view name) const { return store_->shape(name) != nullptr; }

bool Weights::on_demand() const { return store_->on_demand(); }

std::size_t Weights::room() const { return store_->room(); }

std::vector<std::string> Weights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : store_->entries()) names.push_back(name);
  return names;
}

std::map<std::string, Tensor> Weights::tensors() const {
  std::map<std::string, Tensor> tensors;
  for (const std::string& name : names()) tensors.emplace(name, store_->copy(name));
  return tensors;
}

double bytes_in_memory(const std::vector<WeightSpec>& specs) {
  double all = 0.0, largest = 0.0, of_layer = 0.0;
  std::map<std::string, double> layers;
  for (const WeightSpec& spec : specs) {
    const double bytes = sizeof(float) * static_cast<double>(element_count(spec.shape));
    all += bytes;
    largest = std::max(largest, bytes);
    if (const std::size_t dot = spec.name.find('.'); dot != spec.name.npos)
      of_layer = std::max(of_layer, layers[spec.name.substr(0, dot)] += bytes);
  }
  return std::min(all, std::max(static_cast<double>(Weights::kRoom), of_layer) + largest);
}

void validate(const WeightSpec& spec, const Tensor& tensor, NumberFormat type) {
  if (tensor.shape != spec.shape ||
      std::cmp_not_equal(tensor.data.size(), element_count(spec.shape))) {
    throw Error("weights_shape", fmt::format("{} must be {} [{}], it is [{}] with {} elements",
                                             spec.name, spec.dims, fmt::join(spec.shape, ", "),
                                             fmt::join(tensor.shape, ", "), tensor.data.size()));
  }
  require_finite(spec.name, tensor);
  if (type == NumberFormat::int8 && spec.int8)
    require_each(spec, tensor, "a code is a whole number from -127 to 127", [](float code) {
      return std::abs(code) <= 127.0F && std::nearbyint(code) == code &&
             !(code == 0.0F && std::signbit(code));
    });
  if (spec.scale)
    require_each(spec, tensor, "a scale is above 0", [](float scale) { return scale > 0.0F; });
}

void validate(const Weights& weights) {
  const NumberFormat type = weights.stored_type();
  const std::vector<WeightSpec> specs = weight_specs(weights.config(), type);
  std::set<std::string_view> legal;
  for (const WeightSpec& spec : specs) legal.insert(spec.name);
  for (const std::string& name : weights.names()) {
    if (!legal.contains(name)) {
      throw Error("weights_name",
                  fmt::format("{:?} is not a weight of {}", name, print_model(weights.config())));
    }
  }
  for (const WeightSpec& spec : specs) {
    if (!weights.contains(spec.name)) {
      throw Error("weights_name",
                  fmt::format("{} of {} is missing", spec.name, print_model(weights.config())));
    }
    if (!weights.on_demand()) {
      validate(spec, *weights.at(spec.name), type);
    } else if (const Shape& shape = weights.shape(spec.name); shape != spec.shape) {
      throw Error("weights_shape",
                  fmt::format("{} must be {} [{}], it is [{}]", spec.name, spec.dims,
                              fmt::join(spec.shape, ", "), fmt::join(shape, ", ")));
    }
  }
}

Weights stored_as(const Weights& weights, NumberFormat type) {
  if (weights.stored_type() == NumberFormat::int8 && type != NumberFormat::int8)
    throw Error(
        "weights_int8",
        fmt::format("the weights are kept as int8, and the case says weights={}; legal: int8",
                    to_string(type)));
  if (type != NumberFormat::bf16) return weights;
  std::set<std::string, std::less<>> matrices;
  for (const WeightSpec& spec : weight_specs(weights.config()))
    if (spec.matrix) matrices.insert(spec.name);
  return weights.changed(weights.config(),
                         [matrices = std::move(matrices)](const std::string& name, Tensor& tensor) {
                           if (!matrices.contains(name)) return;
                           for (float& value : tensor.data) value = round_to_bf16(value);
                           require_finite(name + " as bf16: ", tensor);
                         });
}

}  // namespace shardproof
