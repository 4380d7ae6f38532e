// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_pickle() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"a change of {}.{}", "对 {}.{} 的修改"},
      {"a call of what another call returned", "对另一个调用的返回值的调用"},
      {"a change of an object's __class__ or methods", "对某个对象的 __class__ 或方法的修改"},
      {"an extension of the copyreg registry (code {})", "copyreg 注册表的扩展（代码 {}）"},
      {"{}: a loader that obeys this pickle runs {}; nothing was run here, but do not load the "
       "file with torch or Python, and ask who wrote it",
       "{}: 照此 pickle 行事的加载器会运行 {}；这里什么也没有运行，但请不要用 torch 或 Python 加"
       "载该文件，并询问写出它的人"},
      {"found more than {} values waiting, the limit", "等待中的值超过上限 {}"},
      {"found an empty stack, expected a value", "发现空栈，应有一个值"},
      {"no MARK on the stack", "栈上没有 MARK"},
      {"found a string that is no UTF-8, expected UTF-8", "发现不是 UTF-8 的字符串，应为 UTF-8"},
      {"found an extension code below 1", "发现小于 1 的扩展代码"},
      {"found a malformed string literal", "发现格式错误的字符串字面量"},
      {"found a malformed unicode escape", "发现格式错误的 unicode 转义"},
      {"found a number with leading zeros", "发现以零开头的数字"},
      {"found {} characters that are not a number of at most 4300 digits",
       "发现 {} 个字符，不是最多 4300 位的数字"},
      {"found a malformed float", "发现格式错误的浮点数"},
      {"a dict or an object", "dict 或对象"},
      {"found a key without a value", "发现没有值的键"},
      {"found SETITEMS behind BUILD, expected it before", "发现 SETITEMS 在 BUILD 之后，应在之前"},
      {"a dict key", "dict 的键"},
      {"something that can be hashed", "可以哈希的值"},
      {"an append", "append 操作"},
      {"a set", "一个 set"},
      {"a list or an object", "list 或对象"},
      {"found APPENDS behind BUILD, expected it before", "发现 APPENDS 在 BUILD 之后，应在之前"},
      {"a set's member", "set 的成员"},
      {"found memo slot {}, expected one near {}", "发现 memo 槽 {}，应接近 {}"},
      {"found memo slot {} set twice, expected once", "发现 memo 槽 {} 设置了两次，应为一次"},
      {"found a use of memo slot {}, which was never set", "使用了从未设置过的 memo 槽 {}"},
      {"found values nested deeper than {}, the limit", "值的嵌套深度超过上限 {}"},
      {"found an out-of-band buffer, expected all data here", "发现带外缓冲区，所有数据应在此处"},
      {"found {} values at STOP, expected one", "STOP 处有 {} 个值，应为一个"},
      {"pickle@{}: found {} bytes behind STOP, expected none; the file holds more than one "
       "pickle or was damaged",
       "pickle@{}: STOP 之后还有 {} 字节，应没有；该文件含有多个 pickle，或已损坏"},
      {"found a global whose name is no UTF-8", "发现名字不是 UTF-8 的 global"},
      {"a tuple", "一个元组"},
      {"an instance", "一个实例"},
      {"a class", "一个类"},
      {"a call", "一次调用"},
      {"a name", "一个名字"},
      {"an object", "一个对象"},
      {"found BUILD twice on one object, expected it once",
       "发现对同一对象执行了两次 BUILD，应为一次"},
      {"a global's name", "global 的名字"},
      {"a string", "字符串"},
      {"keyword arguments", "关键字参数"},
      {"a dict", "一个 dict"},
      {"found OBJ without a class", "发现没有类的 OBJ"},
      {"pickle@{}: {}", "pickle@{}: {}"},
      {"found byte {:#04x}, expected an opcode", "发现字节 {:#04x}，应为操作码"},
      {"found {} of {}, expected {}; the file was made by hand",
       "{1} 中发现 {0}，应为 {2}；该文件是手工制作的"},
      {"int of {} bytes: expected at most 255 in protocol 2",
       "{} 字节的 int：协议 2 中最多为 255 字节"},
      {"global: found a line break in its name, expected none", "global: 名字中发现换行，应没有"},
      {"pickle: found values nested deeper than {}, which no reader accepts",
       "pickle: 值的嵌套深度超过 {}，没有读取者接受"},
      {"pickle: found a graph whose pickle outgrows {} bytes",
       "pickle: 对象图的 pickle 超过 {} 字节"},
      {"found an opcode that crosses the end of its frame at {}, expected it inside; the file "
       "was damaged or made by hand",
       "发现跨越其 frame 末尾 {} 的操作码，应在其内；该文件已损坏或是手工制作的"},
      {"found more bytes than {}, the limit", "字节数超过上限 {}"},
      {"found the end of the input at {}, expected {} more bytes; the file was cut or damaged, "
       "copy it again",
       "输入在 {} 处结束，还应有 {} 字节；该文件被截断或损坏，请重新拷贝"},
      {"found fewer bytes than announced", "字节数少于所声明的"},
      {"found a length of {}, expected at most the {} bytes that are left",
       "发现长度 {}，最多应为剩下的 {} 字节"},
      {"found a string of {} bytes, expected at most {}", "发现 {} 字节的字符串，最多应为 {}"},
      {"found a line without end", "发现没有结尾的行"},
      {"found a memo index that is no 32-bit decimal number", "发现不是 32 位十进制数的 memo 索引"},
      {"found PROTO inside the stream, expected it only in front",
       "发现流中间的 PROTO，应只在开头"},
      {"found protocol {}, expected at most {}", "发现协议 {}，最多应为 {}"},
      {"found a frame inside a frame", "发现 frame 之内的 frame"},
      {"found a frame of {} bytes, expected at most the {} that are left",
       "发现 {} 字节的 frame，最多应为剩下的 {}"},
      {"found a negative length", "发现负的长度"},
      {"more opcodes than the limit", "操作码数量超过上限"},
  });
  return kSentences;
}

}  // namespace shardwright
