#include "cli/mkfs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/bytes.h"

namespace jbdlab::cli {
namespace {

constexpr std::string_view kUuid = "0badcafe-1234-5678-9abc-0123456789ab";
constexpr std::string_view kExtended =
    "lazy_itable_init=0,lazy_journal_init=0,nodiscard,"
    "hash_seed=0badcafe-1234-5678-9abc-0123456789ab";
// Options of mke2fs(8) that take an argument, and those that do not. Others are refused: they do
// not make a file system in an image (-n, -S, -V), or reach for other files and devices (-l, -z),
// or take long for nothing (-c).
constexpr std::string_view kWithArgument = "bCdEegGiIJLmMNoOrTtU";
constexpr std::string_view kWithoutArgument = "DFjKqv";

// What Debian 12's mke2fs.conf says, which is what e2fsprogs 1.47 has built in but for the features
// that Debian leaves out (metadata_csum_seed, orphan_file).
constexpr std::string_view kConfiguration = R"([defaults]
  base_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
  default_mntopts = acl,user_xattr
  enable_periodic_fsck = 0
  blocksize = 4096
  inode_size = 256
  inode_ratio = 16384
[fs_types]
  ext3 = {
    features = has_journal
  }
  ext4 = {
    features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize
  }
  small = {
    blocksize = 1024
    inode_ratio = 4096
  }
  floppy = {
    blocksize = 1024
    inode_ratio = 8192
  }
  big = {
    inode_ratio = 32768
  }
  huge = {
    inode_ratio = 65536
  }
  news = {
    inode_ratio = 4096
  }
  largefile = {
    inode_ratio = 1048576
    blocksize = -1
  }
  largefile4 = {
    inode_ratio = 4194304
    blocksize = -1
  }
)";

// A file in memory that another process can open by name as long as this object lives.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const noexcept { return fd_; }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }
  bool write(std::string_view text) const {
    return ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  std::string read_text() const {
    std::string text(4096, '\0');
    const ssize_t n = ::pread(fd_, text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }

 private:
  int fd_;
};

Error system_error(std::string_view doing) {
  return {Errc::io, 0, fmt::format("{}: {}", doing, std::strerror(errno))};
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      continue;
    }
    if (!word) word.emplace();
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      *word += text[++i];
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      *word += c;
    }
  }
  if (quote != 0) return fail(Errc::usage, fmt::format("--mkfs: no closing {}", quote));
  if (word) words.push_back(*word);
  return words;
}

// The user's words as they go to mke2fs, and apart from them the values of -E.
struct UserOptions {
  std::vector<std::string> words;
  std::string extended;
};

// Whether the value of -J, a list, asks for an external journal.
bool names_device(std::string_view list) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma).starts_with("device")) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

Result<UserOptions> check_options(std::string_view text) {
  const auto words = split_words(text);
  if (!words) return std::unexpected(words.error());
  UserOptions options;
  for (std::size_t i = 0; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    if (word.size() < 2 || word[0] != '-') {
      return fail(Errc::usage,
                  fmt::format("--mkfs: expected an option of mke2fs, found '{}'", word));
    }
    std::size_t at = 1;
    while (at < word.size() && kWithoutArgument.find(word[at]) != std::string_view::npos) ++at;
    if (at == word.size()) {
      options.words.push_back(word);
      continue;
    }
    const char letter = word[at];
    if (kWithArgument.find(letter) == std::string_view::npos) {
      return fail(
          Errc::usage,
          fmt::format("--mkfs: option -{} of mke2fs is not for use here in '{}'", letter, word));
    }
    std::string value = word.substr(at + 1);
    if (value.empty()) {
      if (++i == words->size()) {
        return fail(Errc::usage, fmt::format("--mkfs: option -{} needs an argument", letter));
      }
      value = (*words)[i];
    }
    if (letter == 'J' && names_device(value)) {
      // mke2fs would write to it.
      return fail(Errc::usage, fmt::format("--mkfs: expected the journal inside the file system, "
                                           "found -J {}",
                                           value));
    }
    if (at > 1) options.words.push_back(word.substr(0, at));
    if (letter == 'E') {
      options.extended += "," + value;
    } else {
      options.words.push_back(fmt::format("-{}", letter));
      options.words.push_back(std::move(value));
    }
  }
  return options;
}

// What mke2fs wrote, as one sentence: without its own name, the name of our file, which is another
// each time, and the list of what -E takes.
std::string complaint_of(const std::string& text, const std::string& image) {
  std::string sentence;
  for (const char c : text.substr(0, text.find("Extended options are separated"))) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank) {
      sentence += c;
    } else if (!sentence.empty() && sentence.back() != ' ') {
      sentence += ' ';
    }
  }
  constexpr std::string_view kName = "mke2fs: ";
  for (std::size_t at; (at = sentence.find(kName)) != std::string::npos;) {
    sentence.erase(at, kName.size());
  }
  for (std::size_t at; (at = sentence.find(image)) != std::string::npos;) {
    sentence.replace(at, image.size(), "of the image");
  }
  while (sentence.ends_with(' ') || sentence.ends_with('.') || sentence.ends_with(':')) {
    sentence.pop_back();
  }
  return sentence.empty() ? "no message" : sentence;
}

Result<void> run_mke2fs(const std::vector<std::string>& words, const MemoryFile& configuration) {
  const MemoryFile messages("mke2fs messages");
  if (messages.fd() < 0) return std::unexpected(system_error("memfd_create"));
  std::vector<std::string> environment{"PATH=/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL=C",
                                       "MKE2FS_CONFIG=" + configuration.path(),
                                       fmt::format("E2FSPROGS_FAKE_TIME={}", kMkfsTime)};
  std::vector<std::string> command{"mke2fs"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (std::string& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, messages.fd(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, messages.fd(), STDERR_FILENO);
  pid_t child = 0;
  int error = ENOENT;
  for (const char* const path : {"/usr/sbin/mke2fs", "/sbin/mke2fs", "/usr/bin/mke2fs"}) {
    if (::access(path, X_OK) != 0) continue;
    error = ::posix_spawn(&child, path, &actions, nullptr, argv.data(), envp.data());
    break;
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return fail(Errc::not_found,
                fmt::format("mke2fs (package e2fsprogs) cannot be run: {}", std::strerror(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Errc::usage, fmt::format("--mkfs: mke2fs refuses: {}",
                                       complaint_of(messages.read_text(), words.back())));
}

}  // namespace

Result<sim::BlockStore> make_file_system(std::string_view options, std::uint64_t size_bytes) {
  auto user = check_options(options);
  if (!user) return std::unexpected(user.error());
  const MemoryFile image("jbdlab image");
  const MemoryFile configuration("mke2fs.conf");
  if (image.fd() < 0 || configuration.fd() < 0) {
    return std::unexpected(system_error("memfd_create"));
  }
  if (!configuration.write(kConfiguration)) return std::unexpected(system_error("memfd write"));
  if (size_bytes == 0) {
    return fail(Errc::usage, "--size: expected room for a file system, found 0");
  }
  if (size_bytes > std::uint64_t{INT64_MAX} ||
      ::ftruncate(image.fd(), static_cast<off_t>(size_bytes)) != 0) {
    return fail(Errc::usage, fmt::format("--size: {} bytes cannot be had", size_bytes));
  }
  std::vector<std::string> words{"-q", "-F", "-t", "ext4", "-U", std::string(kUuid)};
  words.insert(words.end(), user->words.begin(), user->words.end());
  words.insert(words.end(), {"-E", std::string(kExtended) + user->extended, image.path()});
  const Result<void> made = run_mke2fs(words, configuration);
  if (!made) return std::unexpected(made.error());

  std::array<std::byte, 4> log_block_size{};
  constexpr off_t kLogBlockSize = 1024 + 0x18;
  if (::pread(image.fd(), log_block_size.data(), log_block_size.size(), kLogBlockSize) != 4) {
    return std::unexpected(system_error("reading the new file system"));
  }
  const auto shift = get_le<std::uint32_t>(log_block_size, 0);
  constexpr std::uint32_t kShiftMax = 2;
  if (shift > kShiftMax) {
    return fail(Errc::usage, "--mkfs: blocks of more than 4096 bytes are not simulated");
  }
  return sim::BlockStore::load(image.path(), 1024U << shift);
}

}  // namespace jbdlab::cli
