# SPDX-License-Identifier: Apache-2.0
"""hand-written pickle + torch.save-zip + DCP writer; no torch, no pickle module. Reference for the C++ writer."""
import struct, zlib, os, io
M="torch.distributed.checkpoint.metadata"; F="torch.distributed.checkpoint.filesystem"; OLD="torch.distributed._shard.sharded_tensor.metadata"
class G:   # global
    def __init__(s,m,n): s.m=m; s.n=n
class O:   # NEWOBJ + BUILD(state)  (state None: no BUILD)
    def __init__(s,cls,state): s.cls=cls; s.state=state
class R:   # REDUCE
    def __init__(s,f,args): s.f=f; s.args=args
class Raw:
    def __init__(s,b): s.b=b
class Pk:
    def __init__(s,proto=4,memo=True,frame=False): s.p=proto; s.b=bytearray(); s.memo={}; s.usememo=memo; s.frame=frame
    def put(s,key):
        if not s.usememo: return
        n=len(s.memo); s.memo[key]=n
        s.b+= (b"q"+bytes([n])) if n<256 else b"r"+struct.pack("<I",n)
    def get(s,key):
        if key in s.memo:
            n=s.memo[key]; s.b+= (b"h"+bytes([n])) if n<256 else b"j"+struct.pack("<I",n); return True
        return False
    def str(s,v):
        if s.get(("s",v)): return
        e=v.encode("utf-8","surrogatepass")
        if s.p>=4 and len(e)<256: s.b+=b"\x8c"+bytes([len(e)])+e
        else: s.b+=b"X"+struct.pack("<I",len(e))+e
        s.put(("s",v))
    def w(s,v):
        b=s.b
        if v is None: b+=b"N"
        elif v is True: b+=b"\x88" if s.p>=2 else b"I01\n"
        elif v is False: b+=b"\x89" if s.p>=2 else b"I00\n"
        elif isinstance(v,int):
            if 0<=v<256: b+=b"K"+bytes([v])
            elif 0<=v<65536: b+=b"M"+struct.pack("<H",v)
            elif -2**31<=v<2**31: b+=b"J"+struct.pack("<i",v)
            else:
                n=(v.bit_length()>>3)+1; e=v.to_bytes(n,"little",signed=True); b+=b"\x8a"+bytes([len(e)])+e
        elif isinstance(v,str): s.str(v)
        elif isinstance(v,tuple):
            if len(v)==0: b+=b")"
            elif len(v)<=3:
                for x in v: s.w(x)
                b+=bytes([0x84+len(v)])
            else:
                b+=b"("
                for x in v: s.w(x)
                b+=b"t"
        elif isinstance(v,list):
            b+=b"]"
            if v:
                b+=b"("
                for x in v: s.w(x)
                b+=b"e"
        elif isinstance(v,dict): s.items(v.items())
        elif isinstance(v,Items): s.items(v.l)
        elif isinstance(v,G):
            if s.get(("g",v.m,v.n)): return
            if s.p>=4: s.str(v.m); s.str(v.n); s.b+=b"\x93"
            else: s.b+=b"c"+v.m.encode()+b"\n"+v.n.encode()+b"\n"
            s.put(("g",v.m,v.n))
        elif isinstance(v,O):
            s.w(v.cls); s.b+=b")\x81"
            if v.state is not None: s.w(v.state); s.b+=b"b"
        elif isinstance(v,R): s.w(v.f); s.w(v.args); s.b+=b"R"
        elif isinstance(v,Raw): s.b+=v.b
        elif isinstance(v,float): b+=b"G"+struct.pack(">d",v)
        else: raise TypeError(type(v))
    def items(s,it):
        s.b+=b"}"; it=list(it)
        for i in range(0,len(it),1000):
            s.b+=b"("
            for k,x in it[i:i+1000]: s.w(k); s.w(x)
            s.b+=b"u"
    def done(s,v):
        s.w(v); s.b+=b"."
        h=b"\x80"+bytes([s.p])
        if s.frame: h+=b"\x95"+struct.pack("<Q",len(s.b))
        return h+bytes(s.b)
class Items:      # dict with object keys
    def __init__(s,l): s.l=l

# ---------------- torch.save zip ----------------
DT={"float32":("FloatStorage",4),"bfloat16":("BFloat16Storage",2),"float16":("HalfStorage",2),"int64":("LongStorage",8),"float64":("DoubleStorage",8),"uint8":("ByteStorage",1),"bool":("BoolStorage",1),"int32":("IntStorage",4)}
def tensor_pickle(dtype,shape,stride=None,offset=0,numel=None,v3=False,proto=2):
    n=1
    for x in shape: n*=x
    if stride is None:
        stride=[];r=1
        for x in reversed(shape): stride.append(r); r*=max(x,1)
        stride=stride[::-1]
    numel=n if numel is None else numel
    p=Pk(2,memo=True)
    class PID(Raw): pass
    q=Pk(2,memo=False)
    sub=Pk(2); 
    def pid():
        x=Pk(2,memo=False); 
        st=G("torch","UntypedStorage") if False else (G("torch.storage","UntypedStorage") if v3 else G("torch",DT[dtype][0]))
        es={"float8_e4m3fn":1,"float8_e5m2":1,"uint16":2,"uint32":4,"uint64":8}.get(dtype,DT.get(dtype,(0,1))[1])
        x.w(("storage",st,"0","cpu",numel*es if v3 else numel)); return bytes(x.b)+b"Q"
    fn=G("torch._utils","_rebuild_tensor_v3" if v3 else "_rebuild_tensor_v2")
    od=R(G("collections","OrderedDict"),())
    args=(Raw(pid()),offset,tuple(shape),tuple(stride),False,od)+((G("torch",dtype),) if v3 else ())
    p2=Pk(2,memo=False)
    return p2.done(R(fn,args))
def zip_torch(records, style="torch26", align=64, base=0, prefix="archive", deflate=False, zero_crc=False, eocd64=True):
    """records: list of (name, bytes); returns zip bytes. base: absolute file position of the archive (alignment of payloads is absolute)."""
    out=bytearray(); cd=bytearray(); n=0
    for name,data in records:
        full=((prefix+"/") if prefix else "")+name; fb=full.encode(); pos=len(out)
        crc=0 if zero_crc else zlib.crc32(data)
        comp=data; method=0
        if deflate:
            c=zlib.compressobj(6,zlib.DEFLATED,-15); comp=c.compress(data)+c.flush(); method=8
        if style in ("torch26","torch21"):
            flags=0x0808 if data else 0x0800
            start=pos+30+len(fb)+4; pad=(-(start+base))%align
            extra=b"FB"+struct.pack("<H",pad)+b"Z"*pad
            out+=struct.pack("<IHHHHHIIIHH",0x04034b50,0,flags,method,0,0,0 if data else 0,0,0,len(fb),len(extra))+fb+extra
            out+=comp
            if data: out+=struct.pack("<IIII",0x08074b50,crc,len(comp),len(data))
        elif style=="known":   # sizes in local header, no descriptor, FB padding
            flags=0x0800; start=pos+30+len(fb)+4; pad=(-(start+base))%align
            extra=b"FB"+struct.pack("<H",pad)+b"Z"*pad
            out+=struct.pack("<IHHHHHIIIHH",0x04034b50,20,flags,method,0,0x21,crc,len(comp),len(data),len(fb),len(extra))+fb+extra+comp
        elif style=="plain":   # like python zipfile
            flags=0x0000
            out+=struct.pack("<IHHHHHIIIHH",0x04034b50,20,flags,method,0,0x21,crc,len(comp),len(data),len(fb),0)+fb+comp
        cd+=struct.pack("<IHHHHHHIIIHHHHHII",0x02014b50,0,0,flags,method,0,0,crc,len(comp),len(data),len(fb),0,0,0,0,0,pos)+fb; n+=1
    cdpos=len(out); out+=cd
    if eocd64:
        e=len(out)
        out+=struct.pack("<IQHHIIQQQQ",0x06064b50,44,0x031e,0x2d,0,0,n,n,len(cd),cdpos)
        out+=struct.pack("<IIQI",0x07064b50,0,e,1)
    out+=struct.pack("<IHHHHIIH",0x06054b50,0,0,n,n,len(cd),cdpos,0)
    return bytes(out)
def item(dtype,shape,data,variant="full",base=0,**kw):
    pk=kw.pop("pickle",None) or tensor_pickle(dtype,shape,**{k:kw.pop(k) for k in list(kw) if k in("stride","offset","numel","v3")})
    D=("data.pkl",pk); B=("byteorder",b"little"); T=("data/0",data); V=("version",b"3\n"); S=(".data/serialization_id",b"0"*40)
    rec={"full":[D,(".format_version",b"1"),(".storage_alignment",b"64"),B,T,V,S],"noformat":[D,B,T,V,S],"minimal":[D,T,V],"min_byteorder":[D,B,T,V],"noversion":[D,B,T],"version_first":[V,B,D,T],"data_before_pkl":[T,D,B,V]}[variant]
    return zip_torch(rec,base=base,**kw)

# ---------------- metadata ----------------
SIZE=lambda t: R(G("torch","Size"),(tuple(t),))
def props(dtype,profile):
    if profile=="modern": cls=G(M,"TensorProperties"); en=G(M,"_MEM_FORMAT_ENCODING")
    elif profile=="compat": cls=G(OLD,"TensorProperties"); en=G(OLD,"MEM_FORMAT_ENCODING")
    elif profile=="hybrid_oldcls_newenum": cls=G(OLD,"TensorProperties"); en=G(M,"_MEM_FORMAT_ENCODING")
    elif profile=="hybrid_newcls_oldenum": cls=G(M,"TensorProperties"); en=G(OLD,"MEM_FORMAT_ENCODING")
    elif profile=="compat_getattr": cls=G(OLD,"TensorProperties"); en=None
    elif profile=="modern_getattr": cls=G(M,"TensorProperties"); en=None
    e=R(en,(0,)) if en else R(G("builtins","getattr"),(G(OLD,"MEM_FORMAT_ENCODING") if profile=="compat_getattr" else G(M,"_MEM_FORMAT_ENCODING"),"TORCH_CONTIGUOUS_FORMAT"))
    lay=R(G("torch.serialization","_get_layout"),("torch.strided",))
    return O(cls,(G("torch",dtype),lay,False,e,False))
def metadata(tensors,bytes_items,profile="compat",proto=4,size=SIZE,index=True,planner_data="paths",storage_meta=False,version=None,transform="omit",extra_md=None,sinfo_extra=None,
             frame=False,memo=True,drop=(),order=None,root=None,missing_offset=False,offset_size=None):
    """tensors: list of (fqn,dtype,shape,[(offsets,sizes,file,off,len)]); bytes_items: list of (fqn,file,off,len)"""
    osz=offset_size or size
    sdm=[]; sto=[]
    for fqn,dt,shape,chunks in tensors:
        sdm.append((fqn,O(G(M,"TensorStorageMetadata"),{"properties":props(dt,profile),"size":size(shape),"chunks":[O(G(M,"ChunkStorageMetadata"),{"offsets":size(o),"sizes":size(s)}) for o,s,_,_,_ in chunks]})))
        for i,(o,s,f,off,ln) in enumerate(chunks):
            key={"fqn":fqn,"index":i if index else None}
            if not missing_offset: key["offset"]=osz(o)
            inf={"relative_path":f,"offset":off,"length":ln}
            if transform=="none": inf["transform_descriptors"]=None
            elif transform=="empty": inf["transform_descriptors"]=[]
            if sinfo_extra: inf.update(sinfo_extra)
            sto.append((O(G(M,"MetadataIndex"),key),O(G(F,"_StorageInfo"),inf)))
    for fqn,f,off,ln in bytes_items:
        sdm.append((fqn,O(G(M,"BytesStorageMetadata"),None)))
        sto.append((O(G(M,"MetadataIndex"),{"fqn":fqn,"index":None}),O(G(F,"_StorageInfo"),{"relative_path":f,"offset":off,"length":ln})))
    st={"state_dict_metadata":Items(sdm)}
    pd={"paths":{k:tuple(k.split(".")) for k,_ in sdm},"none":None,"empty":{}}[planner_data]
    st["planner_data"]=pd; st["storage_data"]=Items(sto)
    if storage_meta: st["storage_meta"]=O(G(M,"StorageMeta"),{"checkpoint_id":None,"save_id":"hand","load_id":None,"modules":[]}) if storage_meta is True else storage_meta
    if version: st["version"]=version
    if extra_md: st.update(extra_md)
    for k in drop: st.pop(k,None)
    return Pk(proto,memo=memo,frame=frame).done(O(root or G(M,"Metadata"),st))
