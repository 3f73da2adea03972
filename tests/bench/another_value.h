// Changes one option of a row, for tests that visit all of them.
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "bench/config/config.h"

namespace stratagem::bench {

/// Gives the option a value that it does not have by default.
inline void give_another_value(Config& config, const Option& option) {
  std::visit(
      [&config](const auto& member) {
        if constexpr (requires { member.names; }) {
          const std::string now = member.name_in(config);
          member.set(config,
                     now == member.names.front() ? member.names.back() : member.names.front());
        } else {
          auto& value = config.*member;
          using Value = std::remove_reference_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, bool>) {
            value = !value;
          } else if constexpr (std::is_arithmetic_v<Value>) {
            value += 1;
          } else if constexpr (std::is_same_v<Value, std::string>) {
            value += "-other";
          } else {
            value.emplace_back();
          }
        }
      },
      option.member);
}

}  // namespace stratagem::bench
