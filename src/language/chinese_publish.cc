// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_publish() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"{}: cannot remove", "{}: 无法删除"},
      {"{}: cannot resolve this path", "{}: 无法解析该路径"},
      {"{}: found the target {} the source {}, expected them apart; choose another target",
       "{}: 目标{}源 {}，应互不包含；请选择另一个目标"},
      {"around", "包含"},
      {"in", "位于"},
      {"{} is not a folder, so nothing can be made in it; choose another target",
       "{} 不是文件夹，无法在其中创建内容；请选择另一个 OUT"},
      {"{}: cannot make a folder here", "{}: 无法在这里创建文件夹"},
      {"{}: cannot ask for free space", "{}: 无法查询剩余空间"},
      {"{}: found {} bytes free, expected at least {}; free some space or choose another target",
       "{}: 剩余 {} 字节，至少应为 {}；请释放空间，或选择另一个目标"},
      {"a call to make this folder", "创建该文件夹的调用"},
      {"{}: cannot make a folder beside it", "{}: 无法在它旁边创建文件夹"},
      {"{}: {} unfinished outputs ({}*) lie beside it; remove them",
       "{}: 旁边有 {} 个未完成的输出（{}*）；请删除它们"},
      {"a sync of this folder", "该文件夹的 sync"},
      {"a rename", "改名"},
      {"a removal of what is in this folder", "删除该文件夹中内容的调用"},
      {"the target's path is empty; give one", "目标的路径为空；请给出一个"},
      {"{}: found the root folder, expected a new one", "{}: 这是根文件夹，应为新的文件夹"},
      {"a part of another saved plan", "另一个已保存计划的一个部分"},
      {"{}: {} is writing it now, in {}; wait for it or choose another target",
       "{}: {} 正在写它，位于 {}；请等待，或选择另一个目标"},
      {"{}: found something that is not a folder, expected nothing or a folder; choose another "
       "target or remove it",
       "{}: 那里的内容不是文件夹，应没有内容或为文件夹；请选择另一个目标，或删除它"},
      {"{}: found a folder that is not empty, expected none; choose another target or replace "
       "it (--overwrite)",
       "{}: 文件夹非空，应没有文件夹；请选择另一个目标，或替换它（--overwrite）"},
      {"{}: found a folder that is not empty, expected none; move it away, or save the plan anew, "
       "to "
       "replace it (plan --save --overwrite)",
       "{}: 文件夹非空，应没有文件夹；请移走它，或重新保存计划以替换它（plan --save --overwrite）"},
      {"{}: other entries are in it than before the work; try again",
       "{}: 其中的条目与工作之前不同；请重试"},
      {"{}: cannot take over this unfinished output", "{}: 无法接管这个未完成的输出"},
      {"it is being published now, or removed; nothing is left to be written",
       "它正在发布或删除；没有剩下要写的内容"},
      {"a part of it is being written now; publish it when that is done",
       "它的一个部分正在写；请在其完成后发布"},
      {"{}: cannot make this folder durable", "{}: 无法使该文件夹落盘"},
      {"{}: cannot swap in the new folder", "{}: 无法换入新文件夹"},
      {"{}: cannot move it aside", "{}: 无法把它移开"},
      {"{}: cannot move the new folder here; the old one is now {}, move it back",
       "{}: 无法把新文件夹移到这里；旧的现在是 {}，请把它移回来"},
      {"{}: cannot move the new folder here", "{}: 无法把新文件夹移到这里"},
      {"{}: cannot move it here", "{}: 无法移到这里"},
      {"{}; {} is the new one", "{}；{} 是新的"},
      {"{}: found a second commit", "{}: 发生第二次提交"},
      {"{}: the new folder {} is in place but may not outlive a power failure",
       "{}: 新文件夹 {} 已就位，但断电后可能丢失"},
      {"{} is {} and is never replaced as a whole; choose a folder in it",
       "{} 是{}，绝不会整体替换；请选择其中的一个文件夹"},
      {"the root folder", "根文件夹"},
      {"a mount point", "挂载点"},
      {"the current directory, or holds it,", "当前目录或包含当前目录的目录"},
      {"a home directory, or holds one,", "主目录或包含主目录的目录"},
      {"record '{}' of {}", "{1} 的记录 '{0}'"},
      {"{}: found CRC-32 {:08x} of its {} bytes from {} on, expected {:08x}; its bytes were "
       "altered, restore the file",
       "{0}: 从 {3} 起 {2} 字节的 CRC-32 为 {1:08x}，应为 {4:08x}；其内容被改动，请恢复该文件"},
      {"; if it is a model of the Hugging Face Hub, download it first: {}",
       "；如果它是 Hugging Face Hub 的模型，请先下载：{}"},
      {"; give the path without file://", "；请给出不带 file:// 的路径"},
      {"; {}:// has two slashes", "；{}:// 有两个斜杠"},
      {"{}: found one slash behind {}:, expected two; a folder of that name is ./{}",
       "{}: {}: 后面有一个斜杠，应为两个；若指同名的文件夹，请写 ./{}"},
      {"; {}:// is not read by this build", "；本构建不能读取 {}://"},
      {"{}: download it, or mount it", "{}: 请下载或挂载"},
      {"{}: mount it, or copy it with {}", "{}: 请挂载，或用 {} 拷贝"},
      {"{}: outputs are written on this machine, not to {}://; choose a local path and upload "
       "what was written",
       "{}: 输出写在本机，不能写到 {}://；请选择本地路径，写完再上传"},
      {"{}: found this and {} more like it; remove some",
       "{}: 已有它和另外 {} 个类似的；请删除一些"},
      {"{}; the new file {} is in place but may not outlive a power failure",
       "{}；新文件 {} 已就位，但断电后可能丢失"},
      {"{}: cannot make a temporary file", "{}: 无法创建临时文件"},
      {"{}: cannot unlink a temporary file", "{}: 无法 unlink 临时文件"},
      {"{}: cannot tell the free space", "{}: 无法得知剩余空间"},
      {"{}: {} bytes are free, too few for {} bytes of decoded items; set TMPDIR to a folder "
       "with more room, or save the checkpoint again without stream extensions",
       "{}: 剩余 {} 字节，不够存放 {} 字节的解码条目；请把 TMPDIR 设为空间更大的文件夹，或不用流"
       "扩展重新保存检查点"},
      {"{}: cannot make a temporary file of {} bytes in {}",
       "{0}: 无法在 {2} 中创建 {1} 字节的临时文件"},
      {"{}: cannot write to a temporary file in {}", "{}: 无法写入 {} 中的临时文件"},
      {"{}: found {} bytes, expected {} from {}", "{0}: 发现 {1} 字节，从 {3} 起应有 {2} 字节"},
      {"{}: cannot read a temporary file", "{}: 无法读取临时文件"},
      {"another file has taken its place", "另一个文件取代了它"},
      {"{} bytes became {}", "{} 字节变为 {} 字节"},
      {"it was written to", "它被写入过"},
      {"its state was changed", "它的状态被改动"},
      {"{}/{}: changed while it was read: {}; run the command again once nothing writes to this "
       "checkpoint any more",
       "{}/{}: 读取期间被改动：{}；等不再有程序写入该检查点后，请再次运行该命令"},
      {"it is not there any more", "它不在了"},
  });
  return kSentences;
}

}  // namespace shardwright
