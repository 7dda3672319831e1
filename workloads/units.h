#pragma once

#include <cstdint>
#include <string>

// Numbers as people read them: three or four digits and a unit. In integers, so that they are the
// same everywhere.
namespace jbdlab::workloads {

// "512 B", "1.5 KiB", "10.0 MiB", up to PiB; rounded to the nearest tenth.
std::string format_bytes(std::uint64_t bytes);

// "999 ns", "1.500 us", "12.345 ms", "3.000 s", and from 1000 s on "1234 s"; rounded to the
// nearest.
std::string format_duration_ns(std::uint64_t ns);

// `thousandths` / 1000 as "12345", "123.4" or "1.234": at least four digits where it has them.
std::string format_thousandths(std::uint64_t thousandths);

}  // namespace jbdlab::workloads
