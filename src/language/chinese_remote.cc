// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_remote() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"$AWS_PROFILE: found no profile '{}' in ~/.aws/credentials or config",
       "$AWS_PROFILE: ~/.aws/credentials 和 config 中没有 profile '{}'"},
      {"remote paths are read with {}, which is not here; install it (Debian, Ubuntu: libcurl4, "
       "Fedora: libcurl)",
       "远程路径用 {} 读取，这里没有它；请安装（Debian、Ubuntu: libcurl4，Fedora: libcurl）"},
      {"{} can't be used here; reinstall it", "{} 在这里无法使用；请重新安装"},
      {"${}: found '{}', expected a number from {} to {}",
       "${}: 发现 '{}'，应为 {} 到 {} 之间的数"},
      {"HTTP status {}{}", "HTTP 状态 {}{}"},
      {"only {} bytes came", "只收到 {} 字节"},
      {"the server can't be read from", "无法从服务器读取"},
      {"the server can't be written to", "无法向服务器写入"},
      {"changed while it was read", "读取期间被改动"},
      {"{}: the server did not {} it in {} tries: {}; run the command again when it can be "
       "reached",
       "{0}: 服务器在 {2} 次尝试中都没有{1}它：{3}；能连接之后请再次运行该命令"},
      {"give", "给出"},
      {"take", "接受"},
      {"{}: stopped", "{}: 已中止"},
      {"{}: the server redirects more than {} times", "{}: 服务器的重定向超过 {} 次"},
      {"{}: the server redirects to {}, expected https", "{}: 服务器重定向到 {}，应为 https"},
      {"no memory for a connection", "没有内存可供连接使用"},
      {"{}: the server refuses access: {}{}", "{}: 服务器拒绝访问：{}{}"},
      {"{}: not there: {}{}", "{}: 不存在：{}{}"},
      {"{}: changed while it was read: {}; run the command again once nothing writes to this "
       "checkpoint any more",
       "{}: 读取期间被改动：{}；等不再有程序写入该检查点后，请再次运行该命令"},
      {"{}: the server can't be {}: {}", "{}: 服务器无法{}：{}"},
      {"read from", "读取"},
      {"its headers have no end", "它的头部没有结尾"},
      {"it sends more than it says", "它发送的比所说的多"},
      {"it answers with more than {} bytes", "它的回答超过 {} 字节"},
      {"it packs what it sends ({})", "它压缩了发送的内容（{}）"},
      {"it sends no parts of files; serve them from one that knows ranges",
       "它不能发送文件的一部分；请用支持 range 的服务器提供这些文件"},
      {"found bytes '{}', expected {}-{}", "收到字节 '{}'，应为 {}-{}"},
      {"the file has {} bytes now, {} when it was opened", "文件现在有 {} 字节，打开时为 {}"},
      {"{}: names no model of the Hugging Face Hub; expected hf://OWNER/NAME, "
       "hf://OWNER/NAME@REVISION or a folder in it",
       "{}: 不是 Hugging Face Hub 的模型；应为 hf://OWNER/NAME、hf://OWNER/NAME@REVISION 或其中"
       "的文件夹"},
      {"no commit", "没有 commit"},
      {"; see whether your account may read {}/{}", "；请检查您的账号是否可以读取 {}/{}"},
      {"; if the model is private or asks for consent, set HF_TOKEN or run 'hf auth login'",
       "；如果模型是私有的或需要同意条款，请设置 HF_TOKEN，或运行 'hf auth login'"},
      {"{}: {} answers with what is no description of a model: {}",
       "{}: {} 的回答不是模型的描述：{}"},
      {"{}{}{}: not there in commit {}", "{0}{1}{2}: 在 commit {3} 中不存在"},
      {"no list of files", "没有文件列表"},
      {"too many files", "文件过多"},
      {"pages without an end", "页面没有尽头"},
      {"the next page of its files lies elsewhere", "它的文件列表的下一页在别处"},
      {"no file", "没有文件"},
      {"a file without a path", "没有路径的文件"},
      {"a file without a size", "没有大小的文件"},
      {"no thread can be started to send files", "无法启动发送文件的线程"},
      {"stopped before all was sent", "在全部发送之前被中止"},
      {"no memory to send files", "没有内存可供发送文件"},
      {"{}: this build has no part that reads it", "{}: 本构建没有读取它的部分"},
      {"{}: this build has no part that writes it", "{}: 本构建没有写入它的部分"},
      {"{}: this build has no part that looks there", "{}: 本构建没有查看它的部分"},
      {", or give hf://", "，或给出 hf://"},
      {"{}@{}: found a file of {} bytes, expected {} bytes from here; copy the file again from "
       "its source",
       "{}@{}: 文件有 {} 字节，从这里起应有 {} 字节；请从来源重新拷贝该文件"},
      {"{}: remote folders are only read; choose a local path",
       "{}: 远程文件夹只能读取；请选择本地路径"},
      {"the answer about a new upload", "关于新上传的回答"},
      {"the answer about a new upload has no id", "关于新上传的回答没有 id"},
      {"the answer about a finished upload", "关于完成上传的回答"},
      {"the answer about a finished upload says nothing of it", "关于完成上传的回答没有说明结果"},
      {"a list of uploads", "上传的列表"},
      {"found no list of uploads", "没有上传的列表"},
      {"a list of uploads has more pages and doesn't say where they begin",
       "上传的列表还有更多页，却没有说从何处开始"},
      {"{}: names no folder of a bucket; expected s3://BUCKET/PREFIX, with a BUCKET of at least 3 "
       "letters, digits, '-', '.' or '_'",
       "{}: 不是桶中的文件夹；应为 s3://BUCKET/PREFIX，其中 BUCKET 至少有 3 个字母、数字、'-'、'.' "
       "或 '_'"},
      {"{}: libcurl {} can't sign requests for S3, version 7.88 can; install a newer one",
       "{}: libcurl {} 不能为 S3 的请求签名，7.88 版可以；请安装更新的版本"},
      {"; see whether these credentials may {} the bucket", "；请检查这些凭证是否可以{}该桶"},
      {"; no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
       "AWS_PROFILE",
       "；没有找到凭证：请设置 AWS_ACCESS_KEY_ID 和 AWS_SECRET_ACCESS_KEY，或 AWS_PROFILE"},
      {"a listing says '{}' where a size belongs", "列表中应为大小之处写着 '{}'"},
      {"a listing", "列表"},
      {"found no listing of a bucket", "没有桶的列表"},
      {"a listing has more pages and doesn't say how they are called",
       "列表还有更多页，却没有说如何取得"},
      {"$SHARDWRIGHT_REMOTE_PART_SIZE: found '{}', expected a number of bytes from {} to {}",
       "$SHARDWRIGHT_REMOTE_PART_SIZE: 发现 '{}'，应为 {} 到 {} 之间的字节数"},
      {"{}: is shown and was never made", "{}: 要显示它，却从未创建"},
      {"{}: is written to a server and not read back", "{}: 已写到服务器，不会读回"},
      {"{}: found {} there, expected nothing: nothing in a bucket is replaced; choose another "
       "prefix, or remove what is there",
       "{}: 那里有 {}，应没有：桶中的内容不会被替换；请选择另一个前缀，或删除那里的内容"},
      {"{}: found {} unfinished uploads there, begun {}: another run writes them, or one that "
       "was killed left them; wait for it, or remove them with 'shardwright clean {} --remove'",
       "{}: 那里有 {} 个未完成的上传，始于 {}：另一个运行正在写，或是被杀死的运行留下的；请等待"
       "，或用 'shardwright clean {} --remove' 清除"},
      {", or write to s3://BUCKET/PREFIX", "，或写到 s3://BUCKET/PREFIX"},
      {"list and read", "列出和读取"},
      {"{}: found more than {} objects in one folder", "{}: 一个文件夹中的对象超过 {} 个"},
      {"{}: the server gives the same page of its listing again", "{}: 服务器又给出列表的同一页"},
      {"{}: the server's listing has no end: {} pages in a row bring nothing new",
       "{}: 服务器的列表没有尽头：连续 {} 页没有新内容"},
      {"{}: no object's name begins so", "{}: 没有以此开头的对象名"},
      {"{}: the server doesn't tell how long it is", "{}: 服务器没有说明它有多长"},
      {"{}: changed while it was read: its ETag is {} now, {} when it was listed; run the "
       "command again once nothing writes to this checkpoint any more",
       "{}: 读取期间被改动：它的 ETag 现在是 {}，列出时是 {}；等不再有程序写入该检查点后，请再次"
       "运行该命令"},
      {"{}: the server lists '{}', which is none of this folder's names",
       "{}: 服务器列出 '{}'，它不属于该文件夹"},
      {": somebody removed its upload while it was sent ('shardwright clean', or a rule of the "
       "bucket does); run the command again",
       ": 发送期间有人清除了它的上传（'shardwright clean' 或桶的规则会这样做）；请再次运行该命令"},
      {"write to", "写入"},
      {"written to", "写入"},
      {"{}: the server gives no ETag for a part", "{}: 服务器没有给出某部分的 ETag"},
      {"HTTP status {}", "HTTP 状态 {}"},
      {"{}: the server can't put its parts together: {}", "{}: 服务器无法拼合它的各部分：{}"},
      {"{}: found {} bytes on the server, expected the {} that were sent",
       "{}: 服务器上有 {} 字节，应为发送的 {} 字节"},
      {"{}: the server gives the same page of its uploads again",
       "{}: 服务器又给出上传列表的同一页"},
      {"{}: the server's list of uploads has no end: {} pages in a row bring nothing new",
       "{}: 服务器的上传列表没有尽头：连续 {} 页没有新内容"},
      {"{}: found more than {} unfinished uploads", "{}: 未完成的上传超过 {} 个"},
      {"{}@{}+{}: found a file of {} bytes", "{}@{}+{}: 文件有 {} 字节"},
      {"{}@{}+{}: is written twice", "{}@{}+{}: 写了两次"},
      {"{}: is shown before all of it was sent", "{}: 在全部发送之前就要显示它"},
      {"{}: not a web address; it must begin with https://",
       "{}: 不是网址；它必须以 https:// 开头"},
      {"{}: found a user's name in the address, expected none; put it and the password into "
       "~/.netrc",
       "{}: 地址中有用户名，应没有；请把用户名和密码放在 ~/.netrc 中"},
      {"{}: the server's name is none", "{}: 服务器的名字无效"},
      {"{}: found %, expected two hexadecimal digits behind it",
       "{}: 发现 %，其后应有两位十六进制数字"},
      {"{}: found no weight_map, expected the files of a model",
       "{}: 没有 weight_map，应有模型的文件"},
      {"{}{}{}: the server shows no list of this folder, and none of the files is there that a "
       "checkpoint begins with",
       "{}{}{}: 服务器不列出该文件夹的内容，检查点开头的那些文件也都不在"},
      {"{}: the server's list of the folder above has no such folder",
       "{}: 服务器列出的上级文件夹中没有该文件夹"},
      {"{}: the server shows no list of this folder, so only files of usual names were asked for; "
       "others (a tokenizer's, code of the model's own) are left out",
       "{}: "
       "服务器不列出该文件夹，因此只请求了常用名称的文件；其他文件（分词器文件、模型自带的代码）不"
       "包括在内"},
      {"the server calls it {} now, {} when it was opened; run the command again once nothing "
       "writes "
       "to this checkpoint any more",
       "服务器现在称它为 {}，打开时为 {}；等不再有程序写入该检查点后，请再次运行该命令"},
      {"the server no longer tells its ETag or date, which was {} when it was opened; run the "
       "command "
       "again once nothing writes to this checkpoint any more",
       "服务器不再给出它的 ETag 或日期，打开时为 {}；等不再有程序写入该检查点后，请再次运行该命令"},
      {"{}: changed while it was read: the server calls it {} now, {} when it was opened; run "
       "the command again once nothing writes to this checkpoint any more",
       "{}: 读取期间被改动：服务器现在称它为 {}，打开时为 {}；等不再有程序写入该检查点后，请再次"
       "运行该命令"},
      {"{}: found {} files in one folder, limit {}", "{}: 一个文件夹中有 {} 个文件，上限为 {}"},
      {"{}: found an address with a question mark, which names one page and no folder; download "
       "what it names",
       "{}: 地址中有问号，它指向一个页面而不是文件夹；请下载它所指的内容"},
      {"is nested too deep", "嵌套过深"},
      {"has a text that is too long", "有过长的文本"},
      {"no memory to read {}", "没有内存可供读取{}"},
      {"{} is no XML: {} at byte {}", "{0}不是 XML：字节 {2} 处 {1}"},
  });
  return kSentences;
}

}  // namespace shardwright
