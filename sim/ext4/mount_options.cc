#include "sim/ext4/mount_options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

namespace jbdlab::ext4 {
namespace {

constexpr std::array<std::string_view, 16> kNeutral{
    "defaults",      "rw",         "data=ordered",   "delalloc",  "relatime", "noatime",
    "strictatime",   "nodiratime", "diratime",       "atime",     "barrier",  "barrier=1",
    "auto_da_alloc", "nolazytime", "dioread_nolock", "norelatime"};
constexpr std::array<std::string_view, 25> kNotSimulated{"ro",
                                                         "data=journal",
                                                         "data=writeback",
                                                         "nodelalloc",
                                                         "lazytime",
                                                         "journal_checksum",
                                                         "journal_async_commit",
                                                         "sync",
                                                         "dirsync",
                                                         "discard",
                                                         "nodiscard",
                                                         "noauto_da_alloc",
                                                         "inode_readahead_blks",
                                                         "stripe",
                                                         "min_batch_time",
                                                         "max_batch_time",
                                                         "journal_ioprio",
                                                         "noload",
                                                         "norecovery",
                                                         "dioread_lock",
                                                         "errors",
                                                         "resgid",
                                                         "resuid",
                                                         "quota",
                                                         "dax"};

Result<Duration> parse_commit(std::string_view value) {
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  constexpr unsigned kMax = 2'147'483;  // INT_MAX / HZ at HZ 1000; the kernel refuses more
  if (error != std::errc() || end != value.data() + value.size() || seconds > kMax) {
    return fail(Errc::usage, fmt::format("mount option 'commit={}': expected seconds from 0 to {}",
                                         value, kMax));
  }
  constexpr unsigned kDefault = 5;  // JBD2_DEFAULT_MAX_COMMIT_AGE, also what 0 means
  return std::chrono::seconds(seconds == 0 ? kDefault : seconds);
}

}  // namespace

Result<MountOptions> MountOptions::parse(std::string_view text) {
  MountOptions options;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (option.empty() || std::ranges::find(kNeutral, option) != kNeutral.end()) continue;
    if (option.starts_with("commit=")) {
      const Result<Duration> interval = parse_commit(option.substr(7));
      if (!interval) return std::unexpected(interval.error());
      options.commit_interval = *interval;
    } else if (option == "nobarrier" || option == "barrier=0") {
      options.barrier = false;
    } else {
      const std::string_view name = option.substr(0, option.find('='));
      const bool known = std::ranges::find(kNotSimulated, option) != kNotSimulated.end() ||
                         std::ranges::find(kNotSimulated, name) != kNotSimulated.end();
      return fail(
          known ? Errc::unsupported : Errc::usage,
          fmt::format("mount option '{}' is {}", option, known ? "not simulated" : "not known"));
    }
  }
  return options;
}

}  // namespace jbdlab::ext4
