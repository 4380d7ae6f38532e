// SPDX-License-Identifier: Apache-2.0
#include <shardwright/error.h>

#include <cstdio>

int main() {
  const shardwright::Error error{shardwright::Code::kUsage, "found nothing, expected something", 0};
  std::puts(error.text().c_str());
  return error.text() == "error[SW0900]: found nothing, expected something" ? 0 : 1;
}
