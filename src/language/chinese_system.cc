// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

// What the C library, libcurl and OpenSSL say in English.
std::span<const Sentence> chinese_of_system() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"No such file or directory", "没有那个文件或目录"},
      {"Permission denied", "权限不够"},
      {"Operation not permitted", "不允许的操作"},
      {"Not a directory", "不是目录"},
      {"Is a directory", "是一个目录"},
      {"File exists", "文件已存在"},
      {"File too large", "文件过大"},
      {"File name too long", "文件名过长"},
      {"Input/output error", "输入/输出错误"},
      {"No space left on device", "设备上没有空间"},
      {"Disk quota exceeded", "超出磁盘配额"},
      {"Read-only file system", "只读文件系统"},
      {"Too many open files", "打开的文件过多"},
      {"Too many open files in system", "系统中打开的文件过多"},
      {"Too many levels of symbolic links", "符号链接的层数过多"},
      {"Stale file handle", "文件句柄已失效"},
      {"Device or resource busy", "设备或资源忙"},
      {"Directory not empty", "目录非空"},
      {"Invalid argument", "无效的参数"},
      {"Invalid cross-device link", "无效的跨设备链接"},
      {"Interrupted system call", "被中断的系统调用"},
      {"Resource temporarily unavailable", "资源暂时不可用"},
      {"Cannot allocate memory", "无法分配内存"},
      {"Broken pipe", "断开的管道"},
      {"Illegal seek", "非法 seek 操作"},
      {"Bad file descriptor", "错误的文件描述符"},
      {"No such device or address", "没有那个设备或地址"},
      {"No such process", "没有那个进程"},
      {"Connection timed out", "连接超时"},
      {"Connection refused", "连接被拒绝"},
      {"Operation not supported", "不支持的操作"},
      {"Text file busy", "文本文件忙"},
  });
  return kSentences;
}

}  // namespace shardwright
