module public-user-api.example/publicuserapi

go 1.24
