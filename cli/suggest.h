#pragma once

#include <span>
#include <string>
#include <string_view>

namespace jbdlab::cli {

// The candidate that `word` is most likely a slip of; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// ", did you mean X" or nothing: the end of a sentence about an unknown word.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace jbdlab::cli
