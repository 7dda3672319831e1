#include "analyze/subject.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyze/findings.h"
#include "analyze/volumes.h"

namespace jbdlab::analyze {
namespace {

std::unexpected<Error> in_file(const std::string& path, const Error& error) {
  return fail(error.code, path + ": " + error.what, error.offset);
}

// What is in the file that should have been a volume, if that is a disk with partitions.
std::optional<Error> as_disk(const std::string& path) {
  const auto list = find_volumes(path);
  if (!list) return std::nullopt;
  const bool empty = list->volumes.empty();
  return Error{
      Errc::bad_magic, 0,
      fmt::format("{}: expected a file system, found a disk with a partition table ({}) {}", path,
                  list->table,
                  empty ? std::string{"and no partitions in it"}
                        : "of these volumes:" + volumes_text(*list))};
}

Result<void> attach_device(Subject& subject, std::unique_ptr<ByteSource> device,
                           jbd2::FindingLog& findings) {
  if (!device) {
    findings.add(finding::kJournalDeviceMissing, {},
                 fmt::format("uuid {}", to_string(subject.location.device_uuid)));
    subject.journal_error =
        Error{Errc::not_found, 0,
              fmt::format("the journal is on a device of its own, uuid {}: name it with --journal",
                          to_string(subject.location.device_uuid))};
    return {};
  }
  auto journal = open_device_journal(*device);
  if (!journal) return std::unexpected(journal.error());
  if (journal->uuid != subject.location.device_uuid) {
    return fail(Errc::invalid,
                fmt::format("expected the journal device {}, found {}",
                            to_string(subject.location.device_uuid), to_string(journal->uuid)));
  }
  subject.bytes = std::move(device);
  subject.journal.emplace(std::move(journal->source));
  subject.superblock = journal->superblock;
  return {};
}

void attach_inner(Subject& subject, jbd2::FindingLog& findings) {
  auto journal = open_inner_journal(*subject.image, findings);
  if (journal) {
    subject.journal.emplace(std::move(*journal));
    return;
  }
  subject.journal_error = journal.error();
  findings.add(finding::kJournalMapping, {}, journal.error().what);
}

// Errors are the device's.
Result<Subject> assemble(std::unique_ptr<Image> image, std::unique_ptr<ByteSource> device) {
  Subject subject;
  subject.image = std::move(image);
  subject.location = journal_location(subject.image->superblock());
  jbd2::FindingLog findings;
  for (const jbd2::Finding& finding : subject.image->findings()) findings.add(finding);
  switch (subject.location.kind) {
    case JournalKind::none:
      subject.journal_error =
          Error{Errc::not_found, 0, "the file system has no journal (no has_journal feature)"};
      break;
    case JournalKind::inode:
      attach_inner(subject, findings);
      break;
    case JournalKind::device:
      if (const auto attached = attach_device(subject, std::move(device), findings); !attached) {
        return std::unexpected(attached.error());
      }
      break;
  }
  subject.findings = std::move(findings).finish();
  return subject;
}

}  // namespace

Result<Subject> open_subject(std::unique_ptr<ByteSource> image,
                             std::unique_ptr<ByteSource> device) {
  auto opened = Image::open(std::move(image));
  if (!opened) return std::unexpected(opened.error());
  return assemble(std::move(*opened), std::move(device));
}

Result<Subject> open_bare_journal(std::unique_ptr<ByteSource> bytes) {
  auto journal = open_exported_journal(*bytes);
  if (!journal) return std::unexpected(journal.error());
  Subject subject;
  subject.bytes = std::move(bytes);
  subject.location.kind = JournalKind::inode;
  subject.journal.emplace(std::move(*journal));
  return subject;
}

Result<Subject> open_subject(const SubjectNames& names) {
  auto bytes = open_file(names.image, names.place);
  if (!bytes) return in_file(names.image, bytes.error());
  if (names.exported) {
    auto subject = open_bare_journal(std::move(*bytes));
    if (!subject) return in_file(names.image, subject.error());
    return subject;
  }
  auto image = Image::open(std::move(*bytes));
  if (!image && image.error().code == Errc::bad_magic && names.place.offset == 0 &&
      !names.place.size) {
    if (auto disk = as_disk(names.image)) return std::unexpected(*std::move(disk));
  }
  if (!image) return in_file(names.image, image.error());
  if (!names.journal_device) return assemble(std::move(*image), nullptr);

  const std::string& device_name = *names.journal_device;
  if (journal_location((*image)->superblock()).kind != JournalKind::device) {
    return fail(Errc::invalid, fmt::format("{}: the journal of {} is not on a device of its own",
                                           device_name, names.image));
  }
  auto device = open_file(device_name);
  if (!device) return in_file(device_name, device.error());
  auto subject = assemble(std::move(*image), std::move(*device));
  if (!subject) return in_file(device_name, subject.error());
  return subject;
}

std::vector<jbd2::FsBlockRange> Subject::journal_blocks() const {
  std::vector<jbd2::FsBlockRange> ranges;
  if (!image || location.kind != JournalKind::inode || !journal) return ranges;
  for (const FileRun& run : journal->runs()) {
    ranges.push_back({run.fs_block, FsBlock{run.fs_block.value() + run.count}});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  // A damaged map may name a block twice.
  std::size_t kept = 0;
  for (const jbd2::FsBlockRange& range : ranges) {
    if (kept != 0 && range.first <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  return ranges;
}

void check_agreement(const Ext4Superblock& fs, const jbd2::LogSuperblock& journal,
                     jbd2::FindingLog& findings) {
  if (!journal.empty() && !fs.needs_recovery()) {
    findings.add(finding::kRecoveryFlagClear,
                 {.tid = journal.sequence(), .log_block = journal.start(), .fs_block = {}});
  }
  if (journal.empty() && fs.needs_recovery()) findings.add(finding::kRecoveryFlagOnly);

  const bool fs_has = (fs.features().compat & fs_feature::kFastCommit) != 0;
  const bool journal_has = journal.features().has(jbd2::feature::kFastCommit);
  if (journal_has && !fs_has) findings.add(finding::kFastCommitLeftOn);
  if (fs_has && !journal_has) {
    const std::uint32_t stored = journal.stored_fast_commit_blocks();
    const std::uint32_t area = stored == 0 ? jbd2::LogSuperblock::kDefaultFastCommitBlocks : stored;
    const std::uint32_t length = journal.block_count();
    const std::uint32_t head = journal.head().value();
    if (area < length && head >= length - area && head < length) {
      findings.add(finding::kHeadInFastCommitArea,
                   {.tid = {}, .log_block = journal.head(), .fs_block = {}},
                   fmt::format("head {}, area from block {} on", head, length - area));
    }
  }
}

bool is_anything_wrong(const std::vector<jbd2::Finding>& findings) noexcept {
  return std::any_of(findings.begin(), findings.end(), [](const jbd2::Finding& finding) {
    return finding.severity != jbd2::Severity::note;
  });
}

}  // namespace jbdlab::analyze
