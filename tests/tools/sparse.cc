// sparse [-o OPTIONS] IMAGE >INPUT: packs an image into the form of tests/fuzz/sparse_bytes.h, to
// begin a fuzz corpus with. Of IMAGE only what is not zero is kept.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/sparse_bytes.h"

namespace {

void put_le(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> 8 * i & 0xff));
  }
}

// Gaps of zeros that are shorter than this are kept in a record: about what a record costs.
constexpr std::size_t kGap = 16;
constexpr std::size_t kRecordMax = 4096;

std::string pack(const std::string& image, std::uint8_t options) {
  using jbdlab::test::SparseBytes;
  std::string out;
  put_le(out, options, 1);
  put_le(out, (image.size() + SparseBytes::kSizeUnit - 1) / SparseBytes::kSizeUnit, 1);
  const auto is_data = [](char c) { return c != '\0'; };
  auto at = std::find_if(image.begin(), image.end(), is_data);
  while (at != image.end()) {
    auto end = at;
    for (auto next = at; next != image.end() && next - at < std::ptrdiff_t{kRecordMax};
         next = std::find_if(end, image.end(), is_data)) {
      if (next - end > std::ptrdiff_t{kGap}) {
        break;
      }
      end = next + 1;
    }
    put_le(out, static_cast<std::uint64_t>(at - image.begin()), 4);
    put_le(out, static_cast<std::uint64_t>(end - at), 2);
    out.append(at, end);
    at = std::find_if(end, image.end(), is_data);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  unsigned long options = 0;
  if (words.size() == 3 && words[0] == "-o") {
    options = std::strtoul(words[1].c_str(), nullptr, 0);
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.size() != 1 || options > 0xff) {
    std::fprintf(stderr, "usage: sparse [-o OPTIONS] IMAGE >INPUT\n");
    return 2;
  }
  std::ifstream in(words[0], std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(in), {}};
  if (!in || image.size() > 255 * jbdlab::test::SparseBytes::kSizeUnit) {
    std::fprintf(stderr, "%s: cannot be read, or is larger than 127 MiB\n", words[0].c_str());
    return 3;
  }
  const std::string packed = pack(image, static_cast<std::uint8_t>(options));
  return std::fwrite(packed.data(), 1, packed.size(), stdout) == packed.size() ? 0 : 4;
}
