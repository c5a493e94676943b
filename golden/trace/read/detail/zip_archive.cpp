#include "golden/trace/read/detail/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "weights/base/error.h"

namespace shardproof::dump {
namespace {

[[noreturn]] void refuse(std::string_view why) { throw Error("dump_open", why); }

std::string reason(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path) {
  int code = 0;
  archive_.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive_ && code == ZIP_ER_EXISTS) refuse("holds a member twice");
  if (!archive_) refuse("is not a NumPy archive, or is damaged: " + reason(code));
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  std::set<std::string> seen;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS, &stat) !=
            0 ||
        (stat.valid & ZIP_STAT_NAME) == 0)
      refuse(fmt::format("member {} cannot be read: {}", i, zip_strerror(archive_.get())));
    const std::string name = stat.name;
    if (!seen.insert(name).second) refuse(fmt::format("holds {:?} twice", name));
    if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && stat.encryption_method != ZIP_EM_NONE)
      refuse(fmt::format("{:?} is encrypted", name));
    if ((stat.valid & ZIP_STAT_COMP_METHOD) != 0 && stat.comp_method != ZIP_CM_STORE &&
        stat.comp_method != ZIP_CM_DEFLATE)
      refuse(fmt::format("{:?} is compressed by method {}; legal: stored, or deflate", name,
                         stat.comp_method));
    names_.push_back(name);
  }
}

ZipArchive::Member ZipArchive::open(std::size_t member) const {
  zip_file_t* const file = zip_fopen_index(archive_.get(), member, 0);
  if (file == nullptr)
    refuse(fmt::format("{:?} cannot be read: {}", names_[member], zip_strerror(archive_.get())));
  return {names_[member], file};
}

void ZipArchive::Member::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const zip_int64_t got = zip_fread(file_.get(), out.data(), out.size());
    if (got < 0)
      refuse(fmt::format("{:?} cannot be read: {}", name_, zip_file_strerror(file_.get())));
    if (got == 0) refuse(fmt::format("{:?} ends too early", name_));
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void ZipArchive::Member::end() {
  std::byte next{};
  const zip_int64_t got = zip_fread(file_.get(), &next, 1);
  if (got < 0)
    refuse(fmt::format("{:?} cannot be read: {}", name_, zip_file_strerror(file_.get())));
  if (got > 0) refuse(fmt::format("{:?} goes on after its last element", name_));
}

}  // namespace shardproof::dump
