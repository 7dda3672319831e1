#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

// Ends a test that this machine cannot run: skipped with the reason, or failed with it where
// REQUIRE_KERNEL=1 says that the machine is meant to be able to.
#define SKIP_OR_FAIL(reason)                           \
  do {                                                 \
    if (::jbdlab::test::kernel_is_required()) {        \
      FAIL() << "REQUIRE_KERNEL=1, and: " << (reason); \
    }                                                  \
    GTEST_SKIP() << (reason);                          \
  } while (false)

// For the first line of a test or of SetUp.
#define NEED_MOUNTS()                                        \
  do {                                                       \
    const std::string why = ::jbdlab::test::why_no_mounts(); \
    if (!why.empty()) SKIP_OR_FAIL(why);                     \
  } while (false)
#define NEED_TRACING()                                        \
  do {                                                        \
    const std::string why = ::jbdlab::test::why_no_tracing(); \
    if (!why.empty()) SKIP_OR_FAIL(why);                      \
  } while (false)

namespace jbdlab::test {

inline bool kernel_is_required() {
  const char* value = std::getenv("REQUIRE_KERNEL");
  return value != nullptr && std::string_view{value} == "1";
}

// Why an ext4 image cannot be mounted here, or "". Tried once with a small image.
std::string why_no_mounts();

// Why the kernel's events cannot be recorded here, or "". Mounts tracefs where it is not.
std::string why_no_tracing();

// A loop device of our own over an image file; detached with the object.
class LoopDevice {
 public:
  enum class Access { read_only, read_write };

  // Null, and the test fails, if the kernel does not give one.
  static std::unique_ptr<LoopDevice> attach(const std::filesystem::path& image, Access access);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& name() const noexcept { return name_; }  // "/dev/loop7"

 private:
  explicit LoopDevice(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

// An image mounted at a folder of its own; unmounted with the object.
class Mount {
 public:
  // `options` as for mount -o. Null, and the test fails with the kernel's words, if the kernel
  // refuses.
  static std::unique_ptr<Mount> mount(const std::filesystem::path& image, LoopDevice::Access access,
                                      const std::string& options);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  const std::filesystem::path& folder() const noexcept;

 private:
  struct State;
  explicit Mount(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Writes one recording of `script` (record/record.sh, which says what `mkfs` and `mount` are) to
// `recording`, with the image on a tmpfs if there is one. The test fails if it cannot.
void record(const std::filesystem::path& script, int repeats, int image_mib,
            const std::string& mkfs, const std::string& mount,
            const std::filesystem::path& recording);

}  // namespace jbdlab::test
