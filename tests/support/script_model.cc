#include "tests/support/script_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/files.h"

namespace jbdlab::test {
namespace {

std::uint64_t number(const std::string& word) {
  std::size_t end = 0;
  std::uint64_t value = std::stoull(word, &end, 0);
  if (end < word.size()) {
    value *= word[end] == 'K' ? 1024U : 1024U * 1024U;
  }
  return value;
}

// The words of each operation line, without comment and thread prefix.
std::vector<std::vector<std::string>> operations(std::string_view script) {
  std::vector<std::vector<std::string>> result;
  for (const auto& line : lines_of(script)) {
    auto words = words_of(line);
    const auto comment = std::find_if(words.begin(), words.end(),
                                      [](const std::string& word) { return word[0] == '#'; });
    words.erase(comment, words.end());
    if (!words.empty() && words[0][0] == 't' && words[0].back() == ':') {
      words.erase(words.begin());
    }
    if (!words.empty() && words[0] != "mark" && words[0] != "barrier") {
      result.push_back(std::move(words));
    }
  }
  return result;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

std::string content(std::string_view path, std::uint64_t offset, std::uint64_t size) {
  std::uint32_t seed = 2166136261U;
  for (const char c : path) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  std::string bytes;
  bytes.reserve(size);
  for (std::uint64_t o = offset; o < offset + size; ++o) {
    std::uint64_t word = ((o >> 3) + (std::uint64_t{seed} << 32)) * 0x9E3779B97F4A7C15U;
    word ^= word >> 29;
    bytes.push_back(static_cast<char>(word >> (8 * (o & 7)) & 0xff));
  }
  return bytes;
}

ScriptModel ScriptModel::after(std::string_view script, std::size_t last) {
  ScriptModel model;
  for (const auto& words : operations(script)) {
    if (last-- == 0) {
      break;
    }
    model.apply(words);
  }
  return model;
}

ScriptModel ScriptModel::after_all(std::string_view script) {
  return after(script, std::numeric_limits<std::size_t>::max());
}

std::size_t ScriptModel::count_operations(std::string_view script) {
  return operations(script).size();
}

void ScriptModel::write(const std::string& path, std::uint64_t offset, std::uint64_t size) {
  std::string& file = files_[path];
  if (file.size() < offset + size) {
    file.resize(offset + size, '\0');
  }
  file.replace(offset, size, content(path, offset, size));
  if (synchronous_.contains(path)) {
    sync_path(path);
  }
}

void ScriptModel::sync_path(const std::string& path) {
  if (const auto file = files_.find(path); file != files_.end()) {
    durable_files_[path] = file->second;
  }
  // The transaction that made a new file durable holds its directories, too.
  for (std::string folder = files_.contains(path) ? parent_of(path) : path;
       directories_.contains(folder); folder = parent_of(folder)) {
    durable_directories_.insert(folder);
  }
}

void ScriptModel::sync_all() {
  durable_files_ = files_;
  durable_directories_ = directories_;
}

void ScriptModel::apply(const std::vector<std::string>& words) {
  const std::string& name = words[0];
  const std::string path = words.size() > 1 ? words[1] : "";
  const auto has = [&](const char* flag) {
    return std::find(words.begin() + 1, words.end(), flag) != words.end();
  };
  if (name == "create") {
    files_[path] = "";
  } else if (name == "open") {
    if (has("trunc") || (has("creat") && !files_.contains(path))) {
      files_[path] = "";
    }
    if (has("sync") || has("dsync")) {
      synchronous_.insert(path);
    }
  } else if (name == "close") {
    synchronous_.erase(path);
  } else if (name == "mkdir") {
    directories_.insert(path);
  } else if (name == "write" || name == "append") {
    const bool append = name == "append";
    const std::size_t length_at = append ? 2 : 3;
    std::uint64_t offset = append ? files_.at(path).size() : number(words[2]);
    const std::uint64_t size = number(words[length_at]);
    std::uint64_t count = words.size() > length_at + 1 ? number(words[length_at + 1]) : 1;
    for (; count > 0; --count, offset += size) {
      write(path, offset, size);
    }
  } else if (name == "fsync" || name == "fdatasync") {
    sync_path(path);
  } else if (name == "sync" || name == "syncfs") {
    sync_all();
  } else if (name != "stat" && name != "read" && name != "readdir" && name != "chmod" &&
             name != "sleepms") {
    ADD_FAILURE() << "the model of scripts does not know '" << name << "'";
  }
}

}  // namespace jbdlab::test
