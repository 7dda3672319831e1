#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/byte_source.h"
#include "analyze/image.h"
#include "analyze/journal_source.h"
#include "base/result.h"
#include "jbd2/finding.h"
#include "jbd2/log_reader.h"

namespace jbdlab::analyze {

// What a reading verb is asked about.
struct SubjectNames {
  std::string image;
  VolumePlace place;                          // of the volume in `image`
  std::optional<std::string> journal_device;  // if the journal is on a device of its own
  bool exported = false;                      // `image` is a bare journal
};

// A file system and its journal, or a bare journal, opened for reading.
struct Subject {
  std::unique_ptr<Image> image;       // null for a bare journal
  std::unique_ptr<ByteSource> bytes;  // of the journal, where it is not inside the image
  JournalLocation location;
  std::optional<RunBlockSource> journal;  // if it was found
  LogBlock superblock{0};                 // of the journal, in it
  // Why there is no `journal`, where there should be one.
  std::optional<Error> journal_error;
  std::vector<jbd2::Finding> findings;  // of the image, and of where its journal is

  // The journal's own blocks in the file system, sorted: where no tag may point to.
  std::vector<jbd2::FsBlockRange> journal_blocks() const;
};

// Errors carry the name of the file. A journal that cannot be found is no error but
// `journal_error`; a journal device that is not this file system's is one.
Result<Subject> open_subject(const SubjectNames& names);
// The same from bytes; `device` may be null.
Result<Subject> open_subject(std::unique_ptr<ByteSource> image, std::unique_ptr<ByteSource> device);
Result<Subject> open_bare_journal(std::unique_ptr<ByteSource> bytes);

// What contradicts between the file system and its journal's superblock.
void check_agreement(const Ext4Superblock& fs, const jbd2::LogSuperblock& journal,
                     jbd2::FindingLog& findings);

// The more severe findings are those that a caller reports by its exit status.
bool is_anything_wrong(const std::vector<jbd2::Finding>& findings) noexcept;

}  // namespace jbdlab::analyze
