// Runs the files of a corpus folder through a fuzz target, in name order: what a fuzzer once found
// stays a test in builds without a fuzzer. A crash is the failure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator it(argv[1], error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file()) {
      files.push_back(it->path());
    }
  }
  if (error || files.empty()) {
    std::fprintf(stderr, "%s: expected a folder with at least one corpus file\n", argv[1]);
    return 3;
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::uint8_t> input(bytes.size());
    std::transform(bytes.begin(), bytes.end(), input.begin(),
                   [](char c) { return static_cast<std::uint8_t>(c); });
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu files\n", files.size());
  return 0;
}
