#pragma once

#include "golden/trace/read/detail/sink.h"
#include "tests/fuzz/target.h"

namespace shardproof::dump {

/// Holds that every array gets the bytes that it declares.
class CountingSink : public Sink {
 public:
  void attribute(std::string_view, std::string_view) override {}
  void array(std::string_view, const Attributes&, NumberFormat encoding,
             const Shape& shape) override {
    complete();
    missing_ = static_cast<std::uint64_t>(bytes_of(encoding)) *
               static_cast<std::uint64_t>(element_count(shape));
    must(missing_ <= kAllowance);
  }
  void bytes(std::span<const std::byte> piece) override {
    must(!piece.empty() && piece.size() <= missing_);
    missing_ -= piece.size();
  }
  void in_file(std::uint64_t) override {
    must(missing_ > 0);
    missing_ = 0;
  }
  void unread(std::string_view, const Attributes&, std::string_view why) override {
    complete();
    must(!why.empty());
  }
  void ignored(std::string_view) override {}
  void complete() const { must(missing_ == 0); }

  static constexpr std::uint64_t kAllowance = std::uint64_t{1} << 20;

 private:
  std::uint64_t missing_ = 0;
};

}  // namespace shardproof::dump
