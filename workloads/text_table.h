#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/block_ref.h"
#include "base/check.h"
#include "base/ids.h"

namespace jbdlab::workloads {

using TextId = Id<struct TextIdTag, std::uint32_t>;  // place of a text in its TextTable; 0 is ""

// Every distinct text (path, name, link target) of a script, once. A script of a million lines
// names few paths often or many paths once; either way a line holds four bytes for it.
//
// Ids count up in the order of first intern(). Views stay valid as long as the table, also when it
// is moved. The hash is the one that gives a file its contents (pattern_seed), so it is kept.
class TextTable {
 public:
  TextTable() { intern(""); }

  TextId intern(std::string_view text) {
    const std::uint32_t hash = pattern_seed(text);
    if (2 * (texts_.size() + 1) > slots_.size()) grow();
    std::uint32_t& slot = slot_of(text, hash);
    if (slot == kFree) {
      slot = static_cast<std::uint32_t>(texts_.size());
      texts_.push_back(keep(text));
      seeds_.push_back(hash);
    }
    return TextId{slot};
  }

  std::string_view text(TextId id) const {
    CHECK(id.value() < texts_.size());
    return texts_[id.value()];
  }
  // pattern_seed(text(id)), without computing it again.
  std::uint32_t seed(TextId id) const {
    CHECK(id.value() < seeds_.size());
    return seeds_[id.value()];
  }
  std::size_t count() const noexcept { return texts_.size(); }

 private:
  static constexpr std::uint32_t kFree = 0xffff'ffff;
  static constexpr std::size_t kChunkSize = 1 << 16;

  // Linear probing in a table that is at most half full.
  std::uint32_t& slot_of(std::string_view text, std::uint32_t hash) {
    std::size_t i = hash & (slots_.size() - 1);
    while (slots_[i] != kFree && (seeds_[slots_[i]] != hash || texts_[slots_[i]] != text))
      i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

  void grow() {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), kFree);
    for (std::size_t i = 0; i < texts_.size(); ++i)
      slot_of(texts_[i], seeds_[i]) = static_cast<std::uint32_t>(i);
  }

  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > chunk_left_) {
      const std::size_t size = text.size() > kChunkSize ? text.size() : kChunkSize;
      chunks_.push_back(std::make_unique<char[]>(size));
      chunk_next_ = chunks_.back().get();
      chunk_left_ = size;
    }
    char* const place = chunk_next_;
    std::memcpy(place, text.data(), text.size());
    chunk_next_ += text.size();
    chunk_left_ -= text.size();
    return {place, text.size()};
  }

  std::vector<std::uint32_t> slots_;  // a power of two of them
  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> seeds_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* chunk_next_ = nullptr;
  std::size_t chunk_left_ = 0;
};

}  // namespace jbdlab::workloads
