# of_type FOLDER NAME DTYPE: writes an example with rows of another type below build/, and says where.
of_type() {
    sed "s/bf16/$3/g" "examples/$2.fuse" >"build/$1/$2.$3.fuse"
    echo "build/$1/$2.$3.fuse"
}
