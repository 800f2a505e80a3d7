#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/kernel.sh: what asks most of a kernel, tested under Debian's own in an emulated machine, in the debug build.
# That kernel counts memory by control groups of version 2 alone, knows landlock's second version and cannot tell
# an end by pidfd, whatever this machine's can.  The machine sees this one's files, and writes to memory.
set -eu
cd "$(dirname "$0")/.."
. ci/packages.sh
root=$PWD
folder=$root/build/kernel
programs='workers_(sandbox|reactor|blocking).*|hostile_(sandbox_(hosts|libraries|orphans)|process)|operations_.*|foreign_.*'

skip() { # REASON
    printf 'skip\tkernel\tall\t%s\n' "$1" >>"$ERRAND_RESULTS"
    exit 0
}

[ "$(dpkg --print-architecture)" = amd64 ] || skip "written for amd64"
packages_need yes build/install.log $packages_kernel
ci/build.sh dev
rm -rf "$folder"
mkdir -p "$folder/image" "$folder/first/bin" "$folder/out"

# The kernel is taken out of its package, not installed.
name=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
(cd "$folder" && apt-get download "$name") || skip "no package of a kernel can be had"
dpkg -x "$folder/$name"_*.deb "$folder/image"

# What mounts this machine's files, and the modules that it takes.
cp /bin/busybox "$folder/first/bin/"
for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci netfs \
    fscache 9pnet 9pnet_virtio 9p overlay; do
    find "$folder/image/lib/modules" -name "$module.ko" -exec cp {} "$folder/first/" \;
done
cat >"$folder/first/init" <<'INIT'
#!/bin/busybox sh
busybox=/bin/busybox
# In whatever order they depend on each other.
for round in 1 2 3 4; do
    for module in /*.ko; do $busybox insmod $module 2>/dev/null; done
done
for place in /low /top /new; do $busybox mkdir $place; done
options=trans=virtio,version=9p2000.L,msize=512000,cache=loose
$busybox mount -t 9p -o $options,ro files /low
$busybox mount -t tmpfs -o size=3g top /top
$busybox mkdir /top/upper /top/work
$busybox mount -t overlay -o lowerdir=/low,upperdir=/top/upper,workdir=/top/work all /new
$busybox mount -t devtmpfs dev /new/dev
$busybox mkdir -p /new/dev/pts /new/dev/shm
for link in fd: stdin:/0 stdout:/1 stderr:/2; do
    $busybox ln -s /proc/self/fd${link#*:} /new/dev/${link%%:*}
done
$busybox mount -t devpts pts /new/dev/pts
$busybox mount -t tmpfs shm /new/dev/shm
$busybox mount -t tmpfs run /new/run
$busybox mount -t proc proc /new/proc
$busybox mount -t sysfs sys /new/sys
$busybox mount -t cgroup2 groups /new/sys/fs/cgroup
echo +memory >/new/sys/fs/cgroup/cgroup.subtree_control
$busybox ip link set lo up
$busybox mkdir /new/run/out
$busybox mount -t 9p -o trans=virtio,version=9p2000.L out /new/run/out
exec $busybox switch_root /new /bin/sh /run/out/job
INIT
chmod +x "$folder/first/init"
(cd "$folder/first" && find . | cpio --quiet -o -H newc | gzip -1 >"$folder/first.gz")
cat >"$folder/out/job" <<JOB
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
ulimit -n 20000
ulimit -c 0
cd '$root'
uname -a
build/dev/tools/errand/errand doctor
python3 ci/run_tests.py build/dev --config kernel --results /run/out/results --kinds test \\
    --only-names '$programs' --without-label slow --jobs 2 --slower 10
echo "the tests have ended"
echo o >/proc/sysrq-trigger
sleep 60
JOB

qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -m 6144 -cpu max -nographic -no-reboot \
    -kernel "$folder"/image/boot/vmlinuz-* -initrd "$folder/first.gz" \
    -append "console=ttyS0 quiet panic=-1" \
    -virtfs "local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap" \
    -virtfs "local,path=$folder/out,mount_tag=out,security_model=none" </dev/null
cat "$folder/out/results" >>"$ERRAND_RESULTS"
