// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_io() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"a call to open it", "打开它的调用"},
      {"{}: cannot open for writing", "{}: 无法打开以写入"},
      {"a write", "写入"},
      {"{}: cannot write", "{}: 无法写入"},
      {"{}: cannot cut it", "{}: 无法截断"},
      {"a sync", "sync 调用"},
      {"{}: cannot make the contents durable", "{}: 无法使内容落盘"},
      {"a call to lock it", "锁定它的调用"},
      {"{}: found a link that leads out of the directory, expected a folder inside it; give the "
       "folder that the link points to",
       "{}: 发现指向目录之外的链接，应为目录之内的文件夹；请给出链接所指的文件夹"},
      {"{}: cannot open this folder", "{}: 无法打开该文件夹"},
      {"path '{}': found {}, expected plain names joined by single slashes",
       "路径 '{}': 发现 {}，应为由单个斜杠连接的普通名字"},
      {"a slash at the end", "末尾的斜杠"},
      {"path of {} bytes: found a NUL byte, expected plain names",
       "{} 字节的路径: 发现 NUL 字节，应为普通名字"},
      {"an empty name", "空名字"},
      {"the name '{}'", "名字 '{}'"},
      {"a name over 255 bytes", "超过 255 字节的名字"},
      {"{}: cannot make this folder", "{}: 无法创建该文件夹"},
      {"{}: found an injected fault, expected this only in a test",
       "{}: 发现注入的故障，它只应出现在测试中"},
      {"{}: cannot read this link", "{}: 无法读取该链接"},
      {"{} is a link to {}, which does not exist; finish the download, or remove the link",
       "{} 是指向 {} 的链接，而后者不存在；请完成下载，或删除该链接"},
      {"{} is a link that leads back to itself; remove it", "{} 是指回自身的链接；请删除它"},
      {"{}: cannot follow this link to {}", "{}: 无法跟随该链接到 {}"},
      {"{} is a link out of its folder, to {}; replace it with a copy of that file, or give the "
       "folder that really holds the files",
       "{} 是指向其文件夹之外 {} 的链接；请用该文件的副本替换它，或给出真正存放这些文件的文件夹"},
      {"{}: cannot open", "{}: 无法打开"},
      {"neither a file nor a folder", "既不是文件也不是文件夹"},
      {"a folder", "文件夹"},
      {"a FIFO", "FIFO 文件"},
      {"a socket", "套接字"},
      {"a device", "设备"},
      {"{} is {}, where a file is expected; remove it or restore the file",
       "{} 是{}，那里应为文件；请删除它，或恢复该文件"},
      {"{}: found the end of a window of {} bytes, expected {} from {}",
       "{0}: 窗口共 {1} 字节，已到结尾，从 {3} 起应有 {2} 字节"},
      {"{}: cannot list", "{}: 无法列出"},
      {"{}/{}: cannot look at it", "{}/{}: 无法查看"},
      {"{}: changed while it was read: it is not the file any more that it was at first; run "
       "the command again once nothing writes to this checkpoint any more",
       "{}: 读取期间被改动：它不再是开始时的那个文件；等不再有程序写入该检查点后，请再次运行该命"
       "令"},
      {"{}: found {} bytes{}, expected the file of {} bytes that rank 0 sees; all ranks must "
       "see the same files",
       "{}: 发现 {} 字节{}，应为 rank 0 看到的 {} 字节的文件；所有 rank 必须看到相同的文件"},
      {" that changed at another time", "（修改时间不同）"},
      {"a call to make it", "创建它的调用"},
      {"{}: found something there, expected to make a new file", "{}: 那里已有内容，应新建文件"},
      {"{}: cannot create", "{}: 无法创建"},
      {"{}: cannot look at it", "{}: 无法查看"},
      {"{}: found something that was not made by this conversion, expected an unfinished file "
       "of at most {} bytes",
       "{}: 那里的内容不是该转换写的，应为最多 {} 字节的未完成文件"},
      {"a call to list it", "列出它的调用"},
      {"a call to look at it", "查看它的调用"},
      {"a call to look for it", "查找它的调用"},
      {"found an empty path or one with a NUL byte, expected a folder",
       "路径为空或含有 NUL 字节，应为文件夹"},
      {"a call to open this folder", "打开该文件夹的调用"},
      {"a read", "读取"},
      {"{}@{}: cannot read {} bytes", "{}@{}: 无法读取 {} 字节"},
      {"{}@{}: found a file of {} bytes ({} when it was opened), expected {} bytes from here; "
       "copy the file again from its source",
       "{}@{}: 文件有 {} 字节（打开时为 {}），从这里起应有 {} 字节；请从来源重新拷贝该文件"},
      {"{}@{}: found a write of {} bytes, expected it to end at {}",
       "{}@{}: 写入 {} 字节，应结束于 {} 之内"},
      {"{}@{}: cannot write", "{}@{}: 无法写入"},
      {"{}: cannot read its size", "{}: 无法读取它的大小"},
      {"{}: found a size of {} bytes, expected at most {}", "{}: 大小为 {} 字节，最多应为 {}"},
      {"{}: cannot reserve {} bytes", "{}: 无法预留 {} 字节"},
      {"{}: cannot open: no such file", "{}: 无法打开：没有那个文件"},
      {"{}: found a size of {} bytes, expected one that a file can have",
       "{}: 大小为 {} 字节，应为文件可能有的大小"},
      {"{}: cannot list: no such folder", "{}: 无法列出：没有那个文件夹"},
      {"{}: no such file", "{}: 没有那个文件"},
      {"an empty path or one with a NUL byte names no file",
       "空路径或含有 NUL 字节的路径不指向任何文件"},
      {"process {}: cannot read {} bytes of its memory", "进程 {}: 无法读取它的 {} 字节内存"},
  });
  return kSentences;
}

}  // namespace shardwright
