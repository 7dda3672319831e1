#include "jbd2/format/features.h"

namespace jbdlab::jbd2 {

std::string_view to_string(ChecksumMode mode) noexcept {
  switch (mode) {
    case ChecksumMode::none:
      return "none";
    case ChecksumMode::v1:
      return "v1";
    case ChecksumMode::v2:
      return "v2";
    case ChecksumMode::v3:
      return "v3";
  }
  return "";
}

std::vector<std::string> Features::names() const {
  struct Word {
    FeatureWord word;
    char letter;
    std::uint32_t bits;
  };
  std::vector<std::string> names;
  for (const Word& w :
       {Word{FeatureWord::compat, 'C', compat}, Word{FeatureWord::incompat, 'I', incompat},
        Word{FeatureWord::ro_compat, 'R', ro_compat}}) {
    for (int index = 0; index < 32; ++index) {
      const std::uint32_t bit = std::uint32_t{1} << index;
      if ((w.bits & bit) == 0) continue;
      std::string name = std::string("FEATURE_") + w.letter + std::to_string(index);
      for (const Feature& f : feature::kAll) {
        if (f.word == w.word && f.bit == bit) name = f.name;
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace jbdlab::jbd2
