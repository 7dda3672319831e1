#pragma once

#include <ext2fs/ext2fs.h>

#include <string>

#include "analyze/byte_source.h"

// How libext2fs reads a ByteSource: an io_manager of ours, which has no writing functions at all.
// Included by the few files that call libext2fs.
namespace jbdlab::analyze {

io_manager ext2_channel_manager() noexcept;

// The name to give to ext2fs_open2() with that manager, so that it reads `bytes`, which must
// outlive the file system: libext2fs hands nothing but a name to the function that opens a channel.
std::string ext2_channel_name(ByteSource& bytes);

// The sentence of an error of libext2fs.
std::string error_message(errcode_t error);

}  // namespace jbdlab::analyze
