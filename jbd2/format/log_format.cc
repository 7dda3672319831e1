#include "jbd2/format/log_format.h"

#include "jbd2/format/csum.h"

namespace jbdlab::jbd2 {

LogFormat LogFormat::of(const LogSuperblock& superblock) noexcept {
  const Features features = superblock.features();
  return make(superblock.block_size(), features.checksum_mode(), features.has(feature::k64Bit),
              superblock.uuid(), features.has(feature::kAsyncCommit));
}

LogFormat LogFormat::make(std::uint32_t block_size, ChecksumMode checksums, bool is_64bit,
                          const Uuid& uuid, bool async_commit) noexcept {
  return {.block_size = block_size,
          .checksums = checksums,
          .is_64bit = is_64bit,
          .async_commit = async_commit,
          .seed = journal_seed(uuid),
          .tag = TagLayout::of(checksums, is_64bit)};
}

}  // namespace jbdlab::jbd2
