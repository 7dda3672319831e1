#include "analyze/ext2_channel.h"

#include <et/com_err.h>
#include <fmt/core.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

namespace jbdlab::analyze {
namespace {

errcode_t channel_read(io_channel channel, unsigned long long block, int count, void* data) {
  auto* bytes = static_cast<ByteSource*>(channel->private_data);
  // A negative count is a number of bytes (ext2_io.h).
  const auto size =
      count < 0 ? static_cast<std::size_t>(-static_cast<long>(count))
                : static_cast<std::size_t>(count) * static_cast<std::size_t>(channel->block_size);
  const auto block_size = static_cast<unsigned long long>(channel->block_size);
  if (block > ~0ULL / block_size) return EXT2_ET_SHORT_READ;
  const auto read = bytes->read(block * block_size, {static_cast<std::byte*>(data), size});
  return read ? 0 : EXT2_ET_SHORT_READ;
}

errcode_t channel_read32(io_channel channel, unsigned long block, int count, void* data) {
  return channel_read(channel, block, count, data);
}

errcode_t channel_set_block_size(io_channel channel, int block_size) {
  channel->block_size = block_size;
  return 0;
}

errcode_t channel_write(io_channel, unsigned long, int, const void*) { return EXT2_ET_RO_FILSYS; }

errcode_t channel_flush(io_channel) { return 0; }

errcode_t channel_close(io_channel channel) {
  if (--channel->refcount > 0) return 0;
  const std::unique_ptr<struct_io_channel> owned{channel};
  delete[] channel->name;
  return 0;
}

errcode_t channel_open(const char* name, int flags, io_channel* result) {
  if ((flags & IO_FLAG_RW) != 0) return EXT2_ET_RO_FILSYS;
  const std::string_view text = name;
  std::uintptr_t address = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), address, 16).ec != std::errc{}) {
    return EXT2_ET_BAD_DEVICE_NAME;
  }
  auto channel = std::make_unique<struct_io_channel>();
  channel->magic = EXT2_ET_MAGIC_IO_CHANNEL;
  channel->manager = ext2_channel_manager();
  channel->name = new char[text.size() + 1];
  std::memcpy(channel->name, name, text.size() + 1);
  channel->block_size = 1024;
  channel->refcount = 1;
  channel->private_data = std::bit_cast<ByteSource*>(address);
  *result = channel.release();
  return 0;
}

constexpr struct_io_manager make_manager() {
  struct_io_manager manager{};
  manager.magic = EXT2_ET_MAGIC_IO_MANAGER;
  manager.name = "jbdlab read-only";
  manager.open = channel_open;
  manager.close = channel_close;
  manager.set_blksize = channel_set_block_size;
  manager.read_blk = channel_read32;
  manager.read_blk64 = channel_read;
  manager.write_blk = channel_write;
  manager.flush = channel_flush;
  return manager;
}

}  // namespace

io_manager ext2_channel_manager() noexcept {
  static struct_io_manager manager = make_manager();  // libext2fs wants it mutable; never changed
  return &manager;
}

std::string ext2_channel_name(ByteSource& bytes) {
  return fmt::format("{:x}", std::bit_cast<std::uintptr_t>(&bytes));
}

std::string error_message(errcode_t error) {
  initialize_ext2_error_table();
  return ::error_message(error);
}

}  // namespace jbdlab::analyze
